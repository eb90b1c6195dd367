package keyfuncs

import (
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/lock"
)

// foreign returns an error if the event names a source other than want. An
// event that a test builds by hand need not name any.
func foreign(field, source string, want *eventkind.Kind) error {
	kind := eventkind.OfSource(source)
	switch {
	case source == "" || kind == want:
		return nil
	case kind == nil:
		return &lock.NoKeyError{Field: field, Reason: fmt.Sprintf("is %.40q, which is not a source of %s", source, want)}
	}
	return &lock.NoKeyError{Field: field, Reason: fmt.Sprintf("is %s, so the event %s", source, kind.Refusal(nil))}
}

// foreignRecord returns an error if a record names a source other than its
// type's.
func foreignRecord(record any) error {
	kind, source := kindOf(record)
	if kind == eventkind.SNS {
		return foreign("EventSource", source, kind)
	}
	return foreign("eventSource", source, kind)
}

// kindOf returns the kind of events that have records of this type, and the
// source that this one names. It returns nil for the types of users.
func kindOf(record any) (kind *eventkind.Kind, source string) {
	switch r := record.(type) {
	case events.S3EventRecord:
		return eventkind.S3, r.EventSource
	case events.SQSMessage:
		return eventkind.SQS, r.EventSource
	case events.SNSEventRecord:
		return eventkind.SNS, r.EventSource
	case events.KinesisEventRecord:
		return eventkind.Kinesis, r.EventSource
	case events.DynamoDBEventRecord:
		return eventkind.DynamoDB, r.EventSource
	case events.SimpleEmailRecord:
		return eventkind.SES, r.EventSource
	case events.CodeCommitRecord:
		return eventkind.CodeCommit, r.EventSource
	}
	return nil, ""
}
