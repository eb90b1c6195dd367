package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awskinesis"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
)

// queue holds the properties that are read from an SQS queue.
type queue struct {
	visibilityTimeout number // in seconds
	hasRedrivePolicy  bool
	maxReceiveCount   number
}

// noteQueue notes a queue. Its properties are read later.
func (v *survey) noteQueue(r awssqs.CfnQueue) {
	path := v.note(r)
	v.sourceKinds[path] = sqsQueue
	v.queues[path] = &queue{}
	v.readLater(r, path, func() {
		redrive := resolve(r.Stack(), r.RedrivePolicy())
		policy, _ := redrive.(map[string]any)
		*v.queues[path] = queue{
			// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-sqs-queue.html
			visibilityTimeout: numberOr(r.VisibilityTimeout(), 30),
			hasRedrivePolicy:  redrive != nil,
			maxReceiveCount:   parsedNumber(policy["maxReceiveCount"]),
		}
		v.retention[path] = numberOr(r.MessageRetentionPeriod(), remembered[sqsQueue])
	})
}

// checkVisibilityTimeout warns if a message comes back while the function works
// on it: the message finds its lock held, and that spends one of its receives.
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
func (c *connection) checkVisibilityTimeout(path string, q *queue, timeout number) {
	visibility := q.visibilityTimeout
	if timeout.known && visibility.known && visibility.value < 6*timeout.value {
		c.warn(WarnVisibilityTimeout, "the visibility timeout of its queue %s is %g s, less than six times the function's timeout of %g s, "+
			"so messages come back while the function works on them: set VisibilityTimeout to at least %g s", path, visibility.value, timeout.value, 6*timeout.value)
	}
}

// checkReceiveCount warns if one held lock makes a message fail for good, or if
// nothing keeps it. AWS recommends five receives, on the same page.
func (c *connection) checkReceiveCount(path string, q *queue) {
	if !q.hasRedrivePolicy {
		c.warn(WarnDeadLetterQueue, "its queue %s has no dead-letter queue: "+
			"a message that always fails comes back until its retention period ends, and is then lost. "+
			"Set DeadLetterQueue with a MaxReceiveCount of at least 5", path)
		return
	}
	if q.maxReceiveCount.known && q.maxReceiveCount.value < 2 {
		c.warn(WarnMaxReceiveCount, "its queue %s has a MaxReceiveCount of %g: "+
			"a message that finds its lock held once goes to the dead-letter queue. "+
			"Set MaxReceiveCount to at least 5", path, q.maxReceiveCount.value)
	}
}

// remembered is how many seconds the library remembers a completed event by
// default: see middleware.Remember.
var remembered = map[string]float64{sqsQueue: 4 * day, kinesisStream: day}

const day = 24 * 60 * 60

// noteStream notes a Kinesis stream. Its properties are read later.
func (v *survey) noteStream(r awskinesis.CfnStream) {
	path := v.note(r)
	v.sourceKinds[path] = kinesisStream
	v.readLater(r, path, func() {
		hours := numberOr(r.RetentionPeriodHours(), 24)
		v.retention[path] = number{hours.value * 60 * 60, hours.known}
	})
}

// checkRetention warns if a source can deliver an event again after it was
// forgotten.
func (c *connection) checkRetention(kind, path string, kept number) {
	if memory := remembered[kind]; kept.known && kept.value > memory {
		c.warn(WarnRetention, "its source %s (%s) keeps what it delivers for %.3g days, but the library remembers completed events of %s for %g by default, "+
			"so a delivery after that runs again. Give the handler middleware.Remember with the source's time and acknowledge this warning, or shorten the time",
			path, kind, kept.value/day, kind, memory/day)
	}
}
