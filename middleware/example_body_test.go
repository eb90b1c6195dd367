package middleware_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// purchase is what the messages of the examples carry.
type purchase struct {
	Customer string `json:"customer"`
	Item     string `json:"item"`
}

func perCustomer(_ context.Context, p purchase) (lock.Key, error) {
	if p.Customer == "" {
		return lock.Key{}, &lock.NoKeyError{Field: "customer", Reason: "is missing"}
	}
	return lock.Key{Name: p.Customer}, nil
}

// inTest are options for a handler that is called in a test.
func inTest() []middleware.Option {
	return []middleware.Option{middleware.Store(memstore.New()), middleware.Concurrency(1), middleware.Logger(slog.New(slog.DiscardHandler))}
}

func ExampleEachSQSBody() {
	handle := func(ctx context.Context, p purchase) error {
		m, _ := middleware.RecordFromContext[events.SQSMessage](ctx)
		fmt.Println(m.MessageId, p.Customer, "buys a", p.Item)
		return nil
	}
	// In a function: lambda.Start(middleware.EachSQSBody(perCustomer, handle)).
	wrapped := middleware.EachSQSBody(perCustomer, handle, inTest()...)
	answer, err := wrapped(context.Background(), events.SQSEvent{Records: []events.SQSMessage{
		{MessageId: "a", Body: `{"customer": "jane", "item": "lamp"}`},
		{MessageId: "b", Body: `{"customer": "jane", "item": `},
		{MessageId: "a", Body: `{"customer": "jane", "item": "lamp"}`}, // delivered twice
	}})
	fmt.Println(answer.BatchItemFailures, err)
	// Output:
	// a jane buys a lamp
	// [{b}] <nil>
}

func ExampleEachSNSBody() {
	handle := func(_ context.Context, p purchase) error {
		fmt.Println(p.Customer, "buys a", p.Item)
		return nil
	}
	wrapped := middleware.EachSNSBody(perCustomer, handle, inTest()...)
	fmt.Println(wrapped(context.Background(), events.SNSEvent{Records: []events.SNSEventRecord{
		{SNS: events.SNSEntity{MessageID: "a", Message: `{"customer": "jane", "item": "lamp"}`}},
	}}))
	fmt.Println(wrapped(context.Background(), events.SNSEvent{Records: []events.SNSEventRecord{
		{SNS: events.SNSEntity{MessageID: "b", Message: `{"item": "lamp"}`}},
	}}))
	// Output:
	// jane buys a lamp
	// <nil>
	// lambdalock: 1 of 1 records failed; Records[0]: lambdalock: no key: Records[0].Sns.Message.customer is missing
}

// The order of the shard skips a reading of a sensor that comes after a later
// one of the same shard and partition key.
func ExampleEachKinesisBody() {
	type reading struct {
		Sensor  string  `json:"sensor"`
		Celsius float64 `json:"celsius"`
	}
	bySensor := func(_ context.Context, r reading) (lock.Key, error) { return lock.Key{Name: "sensor/" + r.Sensor}, nil }
	handle := func(_ context.Context, r reading) error {
		fmt.Println(r.Sensor, r.Celsius)
		return nil
	}
	key := keyfuncs.OrderFrom(bySensor, middleware.RecordKey[reading](keyfuncs.KinesisRecord))
	wrapped := middleware.EachKinesisBody(key, handle, inTest()...)

	r := events.KinesisEventRecord{EventID: "shardId-000000000006:4959", EventSourceArn: "arn:aws:kinesis:eu-central-1:123456789012:stream/readings"}
	r.Kinesis.SequenceNumber, r.Kinesis.PartitionKey, r.Kinesis.Data = "4959", "kitchen", []byte(`{"sensor": "kitchen", "celsius": 21.5}`)
	event := events.KinesisEvent{Records: []events.KinesisEventRecord{r}}
	answer, err := wrapped(context.Background(), middleware.KinesisRecords{KinesisEvent: event})
	fmt.Println(answer.BatchItemFailures, err)
	// Output:
	// kitchen 21.5
	// [] <nil>
}

func ExampleWithEventBridgeDetail() {
	handle := func(ctx context.Context, p purchase) error {
		e, _ := middleware.RecordFromContext[events.EventBridgeEvent](ctx)
		fmt.Println(e.DetailType, "by", p.Customer)
		return nil
	}
	wrapped := middleware.WithEventBridgeDetail(perCustomer, handle, middleware.Store(memstore.New()))
	event := events.EventBridgeEvent{ID: "6a7e8feb", DetailType: "Purchase", Detail: []byte(`{"customer": "jane", "item": "lamp"}`)}
	for range 2 { // the second time, nothing happens
		fmt.Println(wrapped(context.Background(), event))
	}
	// Output:
	// Purchase by jane
	// <nil>
	// <nil>
}

// A FIFO queue gives the key, and the body what to do.
func ExampleRecordKey() {
	handle := func(_ context.Context, p purchase) error {
		fmt.Println(p.Customer, "buys a", p.Item)
		return nil
	}
	key := middleware.RecordKey[purchase](keyfuncs.SQSFIFOMessage)
	wrapped := middleware.EachSQSBody(key, handle, inTest()...)
	m := events.SQSMessage{MessageId: "a", EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:orders.fifo", Body: `{"customer": "jane", "item": "lamp"}`}
	m.Attributes = map[string]string{"MessageGroupId": "jane", "SequenceNumber": "18849496460467696128"}
	answer, err := wrapped(context.Background(), events.SQSEvent{Records: []events.SQSMessage{m}})
	fmt.Println(answer.BatchItemFailures, err)
	// Output:
	// jane buys a lamp
	// [] <nil>
}

// Around gives every message a logger with its id.
func ExampleAround() {
	type loggerKey struct{}
	around := func(ctx context.Context, m events.SQSMessage, next func(context.Context) error) error {
		fmt.Println("begin", m.MessageId)
		err := next(context.WithValue(ctx, loggerKey{}, slog.With("message", m.MessageId)))
		fmt.Println("end", m.MessageId, err)
		return err
	}
	handle := func(ctx context.Context, p purchase) error {
		_, ok := ctx.Value(loggerKey{}).(*slog.Logger)
		fmt.Println(p.Customer, "with a logger:", ok)
		return nil
	}
	wrapped := middleware.EachSQSBody(perCustomer, handle, append(inTest(), middleware.Around(around))...)
	_, _ = wrapped(context.Background(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "a", Body: `{"customer": "jane"}`}}})
	// Output:
	// begin a
	// jane with a logger: true
	// end a <nil>
}
