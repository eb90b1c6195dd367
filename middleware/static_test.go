package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestStaticFitsEveryHandler shows that a key function for any event fits
// wherever one for the handler's event does.
func TestStaticFitsEveryHandler(t *testing.T) {
	t.Parallel()
	type body struct{ ID string }
	f := newFixture()
	key, names := keyfuncs.Static("index"), []string{}
	note := func(ctx context.Context) error {
		lease, _ := lock.FromContext(ctx)
		names = append(names, lease.Key.Name)
		return nil
	}
	for name, run := range map[string]func(ctx context.Context) error{
		"SQS": func(ctx context.Context) error {
			h := middleware.EachSQSMessage(key, func(ctx context.Context, _ events.SQSMessage) error { return note(ctx) }, f.options()...)
			_, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{{MessageId: "1"}}})
			return err
		},
		"SNS": func(ctx context.Context) error {
			h := middleware.EachSNSRecord(key, func(ctx context.Context, _ events.SNSEventRecord) error { return note(ctx) }, f.options()...)
			return h(ctx, events.SNSEvent{Records: []events.SNSEventRecord{{}}})
		},
		"S3": func(ctx context.Context) error {
			h := middleware.EachS3Record(key, func(ctx context.Context, _ events.S3EventRecord) error { return note(ctx) }, f.options()...)
			return h(ctx, middleware.S3Records{S3Event: events.S3Event{Records: []events.S3EventRecord{s3Record("a")}}})
		},
		"Kinesis": func(ctx context.Context) error {
			h := middleware.EachKinesisRecord(key, func(ctx context.Context, _ events.KinesisEventRecord) error { return note(ctx) }, f.options()...)
			_, err := h(ctx, middleware.KinesisRecords{KinesisEvent: events.KinesisEvent{Records: []events.KinesisEventRecord{{}}}})
			return err
		},
		"DynamoDB": func(ctx context.Context) error {
			h := middleware.EachDynamoDBRecord(key, func(ctx context.Context, _ events.DynamoDBEventRecord) error { return note(ctx) }, f.options()...)
			_, err := h(ctx, middleware.DynamoDBRecords{DynamoDBEvent: events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{{}}}})
			return err
		},
		"Kafka": func(ctx context.Context) error {
			h := middleware.EachKafkaRecord(key, func(ctx context.Context, _ events.KafkaRecord) error { return note(ctx) }, f.options()...)
			_, err := h(ctx, events.KafkaEvent{Records: map[string][]events.KafkaRecord{"t-0": {{}}}})
			return err
		},
		"custom bus": func(ctx context.Context) error {
			h := middleware.EachEventBridgeEvent(key, func(ctx context.Context, _ awsevents.CustomBusEvent) error { return note(ctx) }, f.options()...)
			return h(ctx, awsevents.CustomBusEvents{{}})
		},
		"DocumentDB": func(ctx context.Context) error {
			h := middleware.EachDocumentDBRecord(key, func(ctx context.Context, _ awsevents.DocumentDBEventRecord) error { return note(ctx) }, f.options()...)
			return h(ctx, awsevents.DocumentDBEvent{Events: []awsevents.DocumentDBEventRecord{{}}})
		},
		"a body": func(ctx context.Context) error {
			h := middleware.EachSQSBody(key, func(ctx context.Context, _ body) error { return note(ctx) }, f.options()...)
			_, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{{MessageId: "2", Body: `{"ID":"7"}`}}})
			return err
		},
		"a detail": func(ctx context.Context) error {
			h := middleware.WithEventBridgeDetail(key, func(ctx context.Context, _ body) error { return note(ctx) }, f.options()...)
			return h(ctx, events.EventBridgeEvent{ID: "3", Source: "shop", Detail: json.RawMessage(`{"ID":"7"}`)})
		},
		"a whole event": func(ctx context.Context) error {
			return middleware.WithLock(key, func(ctx context.Context, _ body) error { return note(ctx) }, f.options()...)(ctx, body{})
		},
		"no event": func(ctx context.Context) error {
			return middleware.WithLock(key, note, f.options()...)(ctx)
		},
	} {
		names = names[:0]
		if err := run(t.Context()); err != nil || len(names) != 1 || names[0] != "index" {
			t.Errorf("%s: %v, names %q", name, err, names)
		}
	}
}

// TestStaticOfAnotherSource shows that a record of another source is refused
// also if the key function looks at nothing: decoded, it is empty, and it would
// be acknowledged.
func TestStaticOfAnotherSource(t *testing.T) { // F26
	t.Parallel()
	f, key := newFixture(), keyfuncs.Static("index")
	sqs, s3 := testdata(t, "sqs.json"), testdata(t, "s3-put.json")
	for name, c := range map[string]struct {
		handler     any
		event, says string
	}{
		"SQS":      {middleware.EachSQSMessage(key, none[events.SQSMessage](t), f.options()...), testdata(t, "kinesis.json"), "Records[0].eventSource is aws:kinesis"},
		"SNS":      {middleware.EachSNSRecord(key, none[events.SNSEventRecord](t), f.options()...), s3, "Records[0].EventSource is aws:s3"},
		"Kinesis":  {middleware.EachKinesisRecord(key, none[events.KinesisEventRecord](t), f.options()...), sqs, "Records[0].eventSource is aws:sqs"},
		"DynamoDB": {middleware.EachDynamoDBRecord(key, none[events.DynamoDBEventRecord](t), f.options()...), sqs, "Records[0].eventSource is aws:sqs"},
	} {
		_, err := lambda.NewHandler(c.handler).Invoke(t.Context(), []byte(c.event))
		if !errors.As(err, new(*lock.NoKeyError)) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want a NoKeyError that says %q", name, err, c.says)
		}
	}
}

// none returns a handler of records that must not run.
func none[R any](t *testing.T) middleware.RecordHandler[R] {
	return func(context.Context, R) error { t.Error("ran"); return nil }
}
