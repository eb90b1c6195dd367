package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awskinesis"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"

	"github.com/lambdalock/lambdalock/infra/rules"
)

// queue is an SQS queue.
type queue struct {
	settings   rules.Queue // without those of the dead-letter queue
	deadLetter reference
}

// noteQueue notes a queue. Its properties are read later.
func (v *survey) noteQueue(r awssqs.CfnQueue) {
	path := v.note(r)
	v.sourceKinds[path] = rules.SQS
	v.queues[path] = &queue{}
	v.readLater(r, path, func() {
		stack := r.Stack()
		redrive := resolve(stack, r.RedrivePolicy())
		policy, _ := redrive.(map[string]any)
		// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-sqs-queue.html
		*v.queues[path] = queue{
			settings: rules.Queue{
				VisibilityTimeout: numberOr(r.VisibilityTimeout(), 30),
				HasRedrivePolicy:  redrive != nil,
				MaxReceiveCount:   parsedNumber(policy["maxReceiveCount"]),
				FIFO:              resolve(stack, r.FifoQueue()) == true,
			},
			deadLetter: reference{stack: v.stackPath(stack), logicalIDs: logicalIDs(policy["deadLetterTargetArn"])},
		}
		v.retention[path] = numberOr(r.MessageRetentionPeriod(), 4*24*60*60)
	})
}

// judgedQueue returns what the rules judge of a queue.
func (v *survey) judgedQueue(q *queue) *rules.Queue {
	judged := q.settings
	for _, target := range v.targets(q.deadLetter) {
		judged.DeadLetterRetention = v.retention[target]
	}
	return &judged
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

// noteConsumer notes a consumer of a Kinesis stream, which is a source like the
// stream itself.
func (v *survey) noteConsumer(r awskinesis.CfnStreamConsumer) {
	path := v.note(r)
	v.sourceKinds[path] = rules.Kinesis
	v.consumed[path] = v.reference(r.Stack(), r.StreamArn())
}

// retentionOf returns how long a source keeps what it delivers.
func (v *survey) retentionOf(source string) rules.Number {
	for _, stream := range v.targets(v.consumed[source]) {
		source = stream
	}
	return v.retention[source]
}
