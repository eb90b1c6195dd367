package keyfuncs

import (
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/lock"
)

// foreign returns an error if the event names a source other than want. An
// event that a test builds by hand need not name any.
func foreign(field, source string, want eventkind.Kind) error {
	kind := eventkind.OfSource(source)
	switch {
	case source == "" || kind == want:
		return nil
	case kind == "":
		return &lock.NoKeyError{Field: field, Reason: fmt.Sprintf("is %.40q, which is not a source of %s", source, want)}
	}
	return &lock.NoKeyError{Field: field, Reason: fmt.Sprintf("is %s, so the event %s", source, kind.Refusal(""))}
}

// foreignRecord returns an error if a record names a source other than its
// type's.
func foreignRecord(record any) error {
	switch r := record.(type) {
	case events.S3EventRecord:
		return foreign("eventSource", r.EventSource, eventkind.S3)
	case events.SQSMessage:
		return foreign("eventSource", r.EventSource, eventkind.SQS)
	case events.SNSEventRecord:
		return foreign("EventSource", r.EventSource, eventkind.SNS)
	case events.KinesisEventRecord:
		return foreign("eventSource", r.EventSource, eventkind.Kinesis)
	case events.DynamoDBEventRecord:
		return foreign("eventSource", r.EventSource, eventkind.DynamoDB)
	case events.SimpleEmailRecord:
		return foreign("eventSource", r.EventSource, eventkind.SES)
	case events.CodeCommitRecord:
		return foreign("eventSource", r.EventSource, eventkind.CodeCommit)
	}
	return nil
}
