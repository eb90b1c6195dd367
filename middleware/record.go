package middleware

import (
	"context"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
)

// opener returns the key of a record, and its handler with what that takes.
type opener[R any] func(context.Context, *R) (opened, error)

// opened is a record that was decoded.
type opened struct {
	key      lock.Key
	handler  func(context.Context) error
	question question // nil: nothing is to be asked
}

// openerOf returns the opener of records, whose questions are those of c.
type openerOf[R any] func(c *config) opener[R]

// whole is the opener of handlers that take the record itself.
func whole[R any](key func(context.Context, R) (lock.Key, error), handler func(context.Context, R) error) openerOf[R] {
	return func(c *config) opener[R] {
		about := questionOf[R](c)
		return func(ctx context.Context, r *R) (opened, error) {
			k, err := key(ctx, *r)
			return opened{k, func(ctx context.Context) error { return handler(ctx, *r) }, about(*r)}, err
		}
	}
}

type recordKey[R any] struct{}

// withRecord returns a context for a record. If nothing is known of its origin,
// that is still the origin of the record around it.
func withRecord[R any](ctx context.Context, r *R) context.Context {
	return context.WithValue(context.WithValue(ctx, recordKey[R]{}, r), recordOrigin{}, func() (source, id string) {
		if source, id = originOf(r); source == "" && id == "" {
			return originIn(ctx)
		}
		return source, id
	})
}

// originOf returns the source of a record and its id there, or "" for what is
// not known. The id of a Kafka record names its topic.
func originOf(record any) (source, id string) {
	switch r := record.(type) {
	case *events.SQSMessage:
		return r.EventSourceARN, r.MessageId
	case *events.SNSEventRecord:
		return r.SNS.TopicArn, r.SNS.MessageID
	case *events.KinesisEventRecord:
		return r.EventSourceArn, r.EventID
	case *events.DynamoDBEventRecord:
		return r.EventSourceArn, r.EventID
	case *events.KafkaRecord:
		return "", fmt.Sprintf("%s-%d@%d", r.Topic, r.Partition, r.Offset)
	case *events.EventBridgeEvent:
		return r.Source, r.ID
	case *awsevents.CustomBusEvent:
		return r.SystemMetadata.Source, r.SystemMetadata.EventID
	}
	return "", ""
}

// RecordFromContext returns the record that a handler of [EachSQSBody] or one
// of its siblings works on, for its attributes, id or time. R is the record's
// type, such as events.SQSMessage, or events.EventBridgeEvent for
// [WithEventBridgeDetail]. It reports false if ctx carries no such record. The
// record shares its maps and slices with the event: copy them before you change
// them.
func RecordFromContext[R any](ctx context.Context) (R, bool) {
	if r, ok := ctx.Value(recordKey[R]{}).(*R); ok {
		return *r, true
	}
	var none R
	return none, false
}
