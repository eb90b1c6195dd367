package keyparts

import (
	"fmt"
	"reflect"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/lock"
)

// Foreign returns an error if the event names a source other than want. An
// event that a test builds by hand need not name any.
func Foreign(field, source string, want *eventkind.Kind) error {
	kind := eventkind.OfSource(source)
	switch {
	case source == "" || kind == want:
		return nil
	case kind == nil:
		return &lock.NoKeyError{Field: field, Reason: fmt.Sprintf("is %.40q, which is not a source of %s", source, want)}
	}
	return &lock.NoKeyError{Field: field, Reason: fmt.Sprintf("is %s, so the event %s", source, kind.Refusal(nil))}
}

// ForeignRecord returns an error if a record names a source other than its
// type's.
func ForeignRecord(record any) error {
	kind, field := eventkind.OfRecord(reflect.TypeOf(record)), "eventSource"
	if kind == eventkind.SNS {
		field = "EventSource"
	}
	return Foreign(field, sourceOf(record), kind)
}

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
