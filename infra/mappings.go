package infra

import (
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
)

// What takes partial answers.
const (
	sqsQueue      = "SQS"
	kinesisStream = "Kinesis"
	tableStream   = "DynamoDB stream"
)

// mapping is an event source mapping.
type mapping struct {
	survey   *survey
	path     string
	function reference
	source   reference
	silent   bool // about batch item failures
	endless  bool // in its retries
}

// queue is an SQS queue.
type queue struct {
	visibility  number
	keeps       bool // messages that fail, for want of a dead-letter queue
	maxReceives number
}

func (v *survey) noteMapping(r awslambda.CfnEventSourceMapping) {
	path := *r.Node().Path()
	m := v.mappings[path]
	if m == nil {
		m = &mapping{survey: v, path: path}
		v.mappings[path] = m
		v.last.Node().AddValidation(m)
	}
	m.function, m.source = v.reference(r.Stack(), r.FunctionName()), v.reference(r.Stack(), r.EventSourceArn())
	v.readLater(r, path, func() {
		types := r.FunctionResponseTypes()
		m.silent = types == nil || !slices.ContainsFunc(*types, func(t *string) bool { return *t == "ReportBatchItemFailures" })
		m.endless = !isLimit(r.MaximumRetryAttempts()) && !isLimit(r.MaximumRecordAgeInSeconds())
	})
}

// isLimit: -1 is without limit, and so is the default.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-lambda-eventsourcemapping.html
func isLimit(value *float64) bool { return value != nil && *value != -1 }

func (v *survey) noteQueue(r awssqs.CfnQueue) {
	path := v.resource(r)
	v.kinds[path] = sqsQueue
	v.queues[path] = &queue{}
	v.readLater(r, path, func() {
		redrive := resolve(r.Stack(), r.RedrivePolicy())
		policy, _ := redrive.(map[string]any)
		// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-sqs-queue.html
		*v.queues[path] = queue{numberOf(r.VisibilityTimeout(), 30), redrive == nil, numberIn(policy["maxReceiveCount"])}
	})
}

// kind is what kind of stream or queue a mapping reads, and its path if it is of the
// stage. The kind is empty if the mapping takes no partial answers.
func (v *survey) kind(source reference) (kind, path string) {
	for _, target := range v.targets(source) {
		if kind := v.kinds[target]; kind != "" {
			return kind, target
		}
	}
	switch text := source.text; {
	case strings.Contains(text, ":sqs:"):
		return sqsQueue, ""
	case strings.Contains(text, ":kinesis:"):
		return kinesisStream, ""
	case strings.Contains(text, ":dynamodb:"):
		return tableStream, ""
	}
	return "", ""
}

// Validate is called by the CDK when all nodes are read. What it finds is said about
// the function.
func (m *mapping) Validate() *[]*string {
	v := m.survey
	fn, _ := v.function(m.function)
	c := v.connections[fn]
	kind, source := v.kind(m.source)
	if c == nil || kind == "" {
		return &[]*string{}
	}
	if q, ok := v.queues[source]; ok {
		c.checkVisibility(source, q, v.functions[fn].timeout)
		c.checkReceives(source, q)
	}
	if m.silent {
		// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
		c.warn(WarnPartialAnswer, "its event source mapping %s (%s) does not report batch item failures: "+
			"EachSQSMessage and its like answer which records failed, and without the setting Lambda takes them all for done. "+
			"Set ReportBatchItemFailures; or acknowledge this warning if the function returns no partial answer", m.path, kind)
	}
	if kind != sqsQueue && m.endless {
		// https://docs.aws.amazon.com/lambda/latest/dg/kinesis-on-failure-destination.html
		c.warn(WarnRetryLimit, "its event source mapping %s (%s) retries without limit: a record that always fails blocks its shard until it expires. "+
			"Set RetryAttempts or MaxRecordAge, and OnFailure so that the record is not lost", m.path, kind)
	}
	return &[]*string{}
}

// checkVisibility: a message that comes back while it is worked on finds its lock
// held, and spends one of its receives on that.
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
func (c *connection) checkVisibility(path string, q *queue, timeout number) {
	if timeout.known && q.visibility.known && q.visibility.value < 6*timeout.value {
		c.warn(WarnVisibilityTimeout, "the visibility timeout of its queue %s is %g s, less than six times the function's timeout of %g s, "+
			"so that messages come back while they are worked on: set VisibilityTimeout to %g s at least", path, q.visibility.value, timeout.value, 6*timeout.value)
	}
}

// checkReceives: AWS recommends five receives, in the same place.
func (c *connection) checkReceives(path string, q *queue) {
	switch {
	case q.keeps:
		c.warn(WarnDeadLetterQueue, "its queue %s has no dead-letter queue: "+
			"a message that always fails comes back until its retention period ends, and is then lost. "+
			"Set DeadLetterQueue, with MaxReceiveCount of 5 at least", path)
	case q.maxReceives.known && q.maxReceives.value < 2:
		c.warn(WarnMaxReceiveCount, "its queue %s has a MaxReceiveCount of %g: "+
			"a message that finds its lock held once goes to the dead-letter queue. "+
			"Set MaxReceiveCount to 5 at least", path, q.maxReceives.value)
	}
}
