package keyfuncs

import (
	"fmt"
	"reflect"

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
	kind, field := kindOf(record), "eventSource"
	if kind == eventkind.SNS {
		field = "EventSource"
	}
	return foreign(field, sourceOf(record), kind)
}

// kindOf returns the kind of events that have such records, or nil for records
// of the user's own.
func kindOf(record any) *eventkind.Kind { return eventkind.OfRecord(reflect.TypeOf(record)) }

// sourceOf returns the source that a record names, or "".
func sourceOf(record any) string {
	switch r := record.(type) {
	case events.S3EventRecord:
		return r.EventSource
	case events.SQSMessage:
		return r.EventSource
	case events.SNSEventRecord:
		return r.EventSource
	case events.KinesisEventRecord:
		return r.EventSource
	case events.DynamoDBEventRecord:
		return r.EventSource
	case events.SimpleEmailRecord:
		return r.EventSource
	case events.CodeCommitRecord:
		return r.EventSource
	}
	return ""
}
