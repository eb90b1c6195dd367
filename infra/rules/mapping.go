package rules

import (
	"fmt"
	"strings"
)

// The kinds of sources that take partial answers, as messages name them.
const (
	SQS            = "SQS"
	Kinesis        = "Kinesis"
	DynamoDBStream = "DynamoDB stream"
)

// KindOf returns the kind of a source by its ARN, or "" if the source takes no
// partial answers. The ARN may be an expression in JSON.
func KindOf(arn string) string {
	switch {
	case strings.Contains(arn, ":sqs:"):
		return SQS
	case strings.Contains(arn, ":kinesis:"):
		return Kinesis
	case strings.Contains(arn, ":dynamodb:"):
		return DynamoDBStream
	}
	return ""
}

// Unlimited is the number of retries, and the age of a record, that mean no
// limit. It is the default.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-lambda-eventsourcemapping.html
const Unlimited = -1

// Mapping is an event source mapping of a function that locks.
type Mapping struct {
	Name            string
	Kind            string // such as [SQS]
	Source          string // its name
	Queue           *Queue // nil if the source is none, or is not known
	Retention       Number // of the source, in seconds
	ReportsFailures bool   // takes partial answers
	Retries         Number // or [Unlimited]
	RecordAge       Number // in seconds, or [Unlimited]
}

// Queue is an SQS queue.
type Queue struct {
	VisibilityTimeout Number // in seconds
	HasRedrivePolicy  bool
	MaxReceiveCount   Number
}

// Check judges the mapping and its source, for a function with that timeout in
// seconds.
func (m *Mapping) Check(timeout Number) []Finding {
	var found []Finding
	note := func(id, format string, args ...any) {
		found = append(found, Finding{ID: id, Text: fmt.Sprintf(format, args...)})
	}
	if m.Queue != nil {
		found = append(found, m.checkVisibilityTimeout(timeout)...)
		found = append(found, m.checkReceiveCount()...)
	}
	if memory := remembered[m.Kind]; m.Retention.Known && m.Retention.Value > memory {
		note(Retention, "its source %s (%s) keeps what it delivers for %.3g days, but the library remembers completed events of %s for %g by default, "+
			"so a delivery after that runs again. Give the handler middleware.Remember with the source's time and acknowledge this warning, or shorten the time",
			m.Source, m.Kind, m.Retention.Value/day, m.Kind, memory/day)
	}
	if m.Retries.is(0) {
		note(RetryAttempts, "its event source mapping %s (%s) has RetryAttempts 0: a record that finds its lock held once has failed for good. Set RetryAttempts to at least 5", m.Name, m.Kind)
	}
	if !m.ReportsFailures {
		// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
		note(PartialAnswer, "its event source mapping %s (%s) does not report batch item failures: "+
			"EachSQSMessage and its relatives return the records that failed, and without the setting Lambda ignores that and takes all records for completed. "+
			"Set ReportBatchItemFailures, or acknowledge this warning if the function returns no partial answer", m.Name, m.Kind)
	}
	if m.Kind != SQS && m.Retries.is(Unlimited) && m.RecordAge.is(Unlimited) {
		// https://docs.aws.amazon.com/lambda/latest/dg/kinesis-on-failure-destination.html
		note(RetryLimit, "its event source mapping %s (%s) retries without limit: a record that always fails blocks its shard until the record expires. "+
			"Set RetryAttempts or MaxRecordAge, and OnFailure to keep the record", m.Name, m.Kind)
	}
	return found
}

// checkVisibilityTimeout finds that a message comes back while the function
// works on it: the message finds its lock held, and that spends one of its
// receives.
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
func (m *Mapping) checkVisibilityTimeout(timeout Number) []Finding {
	visibility := m.Queue.VisibilityTimeout
	if !timeout.Known || !visibility.Known || visibility.Value >= 6*timeout.Value {
		return nil
	}
	return []Finding{{ID: VisibilityTimeout, Text: fmt.Sprintf("the visibility timeout of its queue %s is %g s, less than six times the function's timeout of %g s, "+
		"so messages come back while the function works on them: set VisibilityTimeout to at least %g s", m.Source, visibility.Value, timeout.Value, 6*timeout.Value)}}
}

// checkReceiveCount finds that one held lock makes a message fail for good, or
// that nothing keeps it. AWS recommends five receives, on the same page.
func (m *Mapping) checkReceiveCount() []Finding {
	if !m.Queue.HasRedrivePolicy {
		return []Finding{{ID: DeadLetterQueue, Text: fmt.Sprintf("its queue %s has no dead-letter queue: "+
			"a message that always fails comes back until its retention period ends, and is then lost. "+
			"Set DeadLetterQueue with a MaxReceiveCount of at least 5", m.Source)}}
	}
	if receives := m.Queue.MaxReceiveCount; receives.Known && receives.Value < 2 {
		return []Finding{{ID: MaxReceiveCount, Text: fmt.Sprintf("its queue %s has a MaxReceiveCount of %g: "+
			"a message that finds its lock held once goes to the dead-letter queue. "+
			"Set MaxReceiveCount to at least 5", m.Source, receives.Value)}}
	}
	return nil
}

// remembered is how many seconds the library remembers a completed event of a
// kind of source by default: see middleware.Remember.
var remembered = map[string]float64{SQS: 4 * day, Kinesis: day}

const day = 24 * 60 * 60
