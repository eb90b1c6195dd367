package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awskinesis"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"

	"github.com/lambdalock/lambdalock/infra/rules"
)

// noteQueue notes a queue. Its properties are read later.
func (v *survey) noteQueue(r awssqs.CfnQueue) {
	path := v.note(r)
	v.sourceKinds[path] = rules.SQS
	v.queues[path] = &rules.Queue{}
	v.readLater(r, path, func() {
		redrive := resolve(r.Stack(), r.RedrivePolicy())
		policy, _ := redrive.(map[string]any)
		// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-sqs-queue.html
		*v.queues[path] = rules.Queue{
			VisibilityTimeout: numberOr(r.VisibilityTimeout(), 30),
			HasRedrivePolicy:  redrive != nil,
			MaxReceiveCount:   parsedNumber(policy["maxReceiveCount"]),
		}
		v.retention[path] = numberOr(r.MessageRetentionPeriod(), 4*24*60*60)
	})
}

// noteStream notes a Kinesis stream. Its properties are read later.
func (v *survey) noteStream(r awskinesis.CfnStream) {
	path := v.note(r)
	v.sourceKinds[path] = rules.Kinesis
	v.readLater(r, path, func() {
		hours := numberOr(r.RetentionPeriodHours(), 24)
		v.retention[path] = rules.Number{Value: hours.Value * 60 * 60, Known: hours.Known}
	})
}
