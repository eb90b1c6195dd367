package rules

import (
	"fmt"
	"strings"
)

// The kinds of sources whose mappings are judged, as messages name them.
const (
	SQS            = "SQS"
	Kinesis        = "Kinesis"
	DynamoDBStream = "DynamoDB stream"
	Kafka          = "Kafka"
)

// KindOf returns the kind of a source by its ARN, or "" if it is another. The
// ARN may be an expression in JSON. That of a consumer of a stream is Kinesis,
// too.
func KindOf(arn string) string {
	for part, kind := range map[string]string{":sqs:": SQS, ":kinesis:": Kinesis, ":dynamodb:": DynamoDBStream, ":kafka:": Kafka} {
		if strings.Contains(arn, part) {
			return kind
		}
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
	BatchingWindow  Number // in seconds
	TumblingWindow  Number // in seconds

	HasFailureDestination bool
	GoneDestination       string // the failure destination, if it does not exist
	SharesGroup           bool   // Kafka in Queue mode
	DistributesByItself   bool   // Kinesis with record distribution AUTO
	RecordSize            Number // the most that Kinesis takes, in KiB
}

// fewest is the least number of retries with which an event can find its lock
// held and still have a second chance.
const fewest = 2

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
		found = append(found, m.checkDeadLetterQueue()...)
	}
	if memory := remembered[m.Kind]; memory > 0 && m.Retention.Known && m.Retention.Value > memory {
		note(Retention, "its source %s (%s) keeps what it delivers for %.3g days, but the library remembers completed events of %s for %g by default, "+
			"so a delivery after that runs again. Give the handler middleware.Remember with the source's time and acknowledge this warning, or shorten the time",
			m.Source, m.Kind, m.Retention.Value/day, m.Kind, memory/day)
	}
	if !m.ReportsFailures && m.Kind != Kafka { // EachKafkaRecord returns an error for the batch
		// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
		note(PartialAnswer, "its event source mapping %s (%s) does not report batch item failures: "+
			"EachSQSMessage and its relatives return the records that failed, and without the setting Lambda ignores that and takes all records for completed. "+
			"Set ReportBatchItemFailures, or acknowledge this warning if the function returns no partial answer", m.Name, m.Kind)
	}
	if m.Kind != SQS {
		found = append(found, m.checkStream()...)
	}
	return found
}

// remembered is how many seconds the library remembers a completed event of a
// kind of source by default: see middleware.Remember.
var remembered = map[string]float64{SQS: 4 * day, Kinesis: day}

const day = 24 * 60 * 60
