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
	reports  bool // batch item failures
}

// queue is an SQS queue.
type queue struct {
	visibility number
}

func (v *survey) noteMapping(r awslambda.CfnEventSourceMapping) {
	m := &mapping{
		survey: v, path: *r.Node().Path(), function: v.reference(r.Stack(), r.FunctionName()), source: v.reference(r.Stack(), r.EventSourceArn()),
	}
	types := r.FunctionResponseTypes()
	m.reports = types != nil && slices.ContainsFunc(*types, func(t *string) bool { return *t == "ReportBatchItemFailures" })
	if noted := v.mappings[m.path]; noted != nil { // by an earlier synthesis
		*noted = *m
		return
	}
	v.mappings[m.path] = m
	r.Node().AddValidation(m)
}

func (v *survey) noteQueue(r awssqs.CfnQueue) {
	path := v.resource(r)
	v.kinds[path] = sqsQueue
	v.queues[path] = queue{
		// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-sqs-queue.html
		visibility: numberOf(r.VisibilityTimeout(), 30),
	}
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

// Validate is called by the CDK after the aspects. What it finds is said about the
// function.
func (m *mapping) Validate() *[]*string {
	v := m.survey
	fn, _ := v.function(m.function)
	c := v.connections[fn]
	kind, source := v.kind(m.source)
	if c == nil || kind == "" {
		return &[]*string{}
	}
	if q, ok := v.queues[source]; ok {
		c.checkVisibility(source, q, v.timeouts[fn])
	}
	if !m.reports {
		// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
		c.warn(WarnPartialAnswer, "its event source mapping %s (%s) does not report batch item failures: "+
			"EachSQSMessage and its like answer which records failed, and without the setting Lambda takes them all for done. "+
			"Set ReportBatchItemFailures; or acknowledge this warning if the function returns no partial answer", m.path, kind)
	}
	return &[]*string{}
}

// checkVisibility: a message that comes back while it is worked on finds its lock
// held, and spends one of its receives on that.
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
func (c *connection) checkVisibility(path string, q queue, timeout number) {
	if timeout.known && q.visibility.known && q.visibility.value < 6*timeout.value {
		c.warn(WarnVisibilityTimeout, "the visibility timeout of its queue %s is %g s, less than six times the function's timeout of %g s, "+
			"so that messages come back while they are worked on: set VisibilityTimeout to %g s at least", path, q.visibility.value, timeout.value, 6*timeout.value)
	}
}
