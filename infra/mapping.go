package infra

import (
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
)

// The kinds of sources that take partial answers, as messages name them.
const (
	sqsQueue      = "SQS"
	kinesisStream = "Kinesis"
	tableStream   = "DynamoDB stream"
)

// mapping is an event source mapping.
type mapping struct {
	path            string
	function        reference
	source          reference
	reportsFailures bool // takes partial answers
	limitsRetries   bool
	neverRetries    bool
}

// noteMapping notes a mapping. Its properties are read later.
func (v *survey) noteMapping(r awslambda.CfnEventSourceMapping) {
	path := *r.Node().Path()
	m := v.mappings[path]
	if m == nil {
		m = &mapping{path: path}
		v.mappings[path] = m
		onValidation(v.last, func() { v.checkMapping(m) })
	}
	m.function, m.source = v.reference(r.Stack(), r.FunctionName()), v.reference(r.Stack(), r.EventSourceArn())
	v.readLater(r, path, func() {
		types := r.FunctionResponseTypes()
		m.reportsFailures = types != nil && slices.ContainsFunc(*types, func(t *string) bool { return *t == "ReportBatchItemFailures" })
		m.limitsRetries = isLimit(r.MaximumRetryAttempts()) || isLimit(r.MaximumRecordAgeInSeconds())
		m.neverRetries = isZero(r.MaximumRetryAttempts())
	})
}

// isLimit reports whether value limits retries. The default and -1 do not.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-lambda-eventsourcemapping.html
func isLimit(value *float64) bool { return value != nil && *value != -1 }

// sourceKind returns the kind of the source, and its path if it is in the
// stage. The kind is empty if the source takes no partial answers.
func (v *survey) sourceKind(source reference) (kind, path string) {
	for _, target := range v.targets(source) {
		if kind := v.sourceKinds[target]; kind != "" {
			return kind, target
		}
	}
	switch {
	case strings.Contains(source.text, ":sqs:"):
		return sqsQueue, ""
	case strings.Contains(source.text, ":kinesis:"):
		return kinesisStream, ""
	case strings.Contains(source.text, ":dynamodb:"):
		return tableStream, ""
	default:
		return "", ""
	}
}

// checkMapping adds warnings about the function that m invokes, if it is
// connected.
func (v *survey) checkMapping(m *mapping) {
	function, _ := v.functionOf(m.function)
	c := v.connections[function]
	kind, source := v.sourceKind(m.source)
	if c == nil || kind == "" {
		return
	}
	if q, ok := v.queues[source]; ok {
		c.checkVisibilityTimeout(source, q, v.functions[function].timeout)
		c.checkReceiveCount(source, q)
	}
	c.checkRetention(kind, source, v.retention[source])
	if m.neverRetries {
		c.warn(WarnRetryAttempts, "its event source mapping %s (%s) has RetryAttempts 0: a record that finds its lock held once has failed for good. Set RetryAttempts to at least 5", m.path, kind)
	}
	if !m.reportsFailures {
		// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
		c.warn(WarnReportBatchItemFailures, "its event source mapping %s (%s) does not report batch item failures: "+
			"EachSQSMessage and its relatives return the records that failed, and without the setting Lambda ignores that and takes all records for completed. "+
			"Set ReportBatchItemFailures, or acknowledge this warning if the function returns no partial answer", m.path, kind)
	}
	if kind != sqsQueue && !m.limitsRetries {
		// https://docs.aws.amazon.com/lambda/latest/dg/kinesis-on-failure-destination.html
		c.warn(WarnRetryLimit, "its event source mapping %s (%s) retries without limit: a record that always fails blocks its shard until the record expires. "+
			"Set RetryAttempts or MaxRecordAge, and OnFailure to keep the record", m.path, kind)
	}
}
