package keyfuncs

import (
	"context"
	"fmt"
	"reflect"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// Single takes the key of an event from its only record, for handlers of whole
// events that receive one record each:
//
//	Single[events.SQSEvent](SQSMessage)
//
// An SQS or stream event holds one record if its event source mapping has a
// batch size of 1. An event of several records gives a [*lock.NoKeyError], and
// so does one without records, except that an S3 event gives [ErrIgnore]; see
// [S3Object].
func Single[E ~struct {
	Records []R `json:"Records"`
}, R any](key Func[R]) Func[E] {
	notNil("Single", key)
	return func(ctx context.Context, e E) (lock.Key, error) {
		records := struct {
			Records []R `json:"Records"`
		}(e).Records
		otherwise := instead(*new(R))
		if _, s3 := any(records).([]events.S3EventRecord); s3 {
			seen, carried := eventkind.HasJSON(ctx)
			switch {
			case len(records) == 0 && seen:
				return lock.Key{}, fmt.Errorf("the S3 event has no records: it is the s3:TestEvent, which S3 sends when a notification is set up: %w", ErrIgnore)
			case len(records) == 0:
				return lock.Key{}, fmt.Errorf("the S3 event has no records: it is an s3:TestEvent or an event of another source, which look the same once decoded: %w", ErrIgnore)
			case carried:
				otherwise = "lock the message, and in its handler each record, as in docs/SOURCES.md#s3-records-in-a-message"
			}
		}
		return only(ctx, "Records", records, key, otherwise)
	}
}

// instead returns what to do with an event of several records of this type.
func instead(record any) string {
	switch kind := eventkind.OfRecord(reflect.TypeOf(record)); {
	case kind == nil:
		return "handle its records one by one"
	case kind == eventkind.SQS:
		return "wrap a handler of one message with middleware.EachSQSMessage, or set the batch size to 1"
	case kind.Each() == "":
		return "its source sends one"
	default:
		return "wrap a handler of one record with middleware." + kind.Each()
	}
}

// only returns the key of the only record. where is the field that holds the
// records, and instead says what to do with several.
func only[R any](ctx context.Context, where string, records []R, key Func[R], instead string) (lock.Key, error) {
	if len(records) == 0 {
		return lock.Key{}, &lock.NoKeyError{Field: where, Reason: "is empty or missing: " + keyparts.AnotherSource}
	}
	if len(records) == 1 {
		k, err := key(ctx, records[0])
		return k, within(where+"[0]", err)
	}
	if err := keyparts.ForeignRecord(records[0]); err != nil {
		return lock.Key{}, within(where+"[0]", err)
	}
	return lock.Key{}, &lock.NoKeyError{Field: where, Reason: fmt.Sprintf("holds %d records, and one lock cannot stand for them all: %s", len(records), instead)}
}
