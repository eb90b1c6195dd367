package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// shard returns records of one shard, each of another partition key.
func shard(keys ...string) middleware.KinesisRecords {
	var e events.KinesisEvent
	for i, key := range keys {
		e.Records = append(e.Records, events.KinesisEventRecord{
			EventID:        fmt.Sprint("shardId-000000000000:", i+1),
			EventSourceArn: "arn:aws:kinesis:eu-central-1:123456789012:stream/readings",
			Kinesis:        events.KinesisRecord{PartitionKey: key, SequenceNumber: fmt.Sprint(i + 1), Data: []byte("{}")},
		})
	}
	return middleware.KinesisRecords{KinesisEvent: e}
}

// quiet returns the options of an example: a store in memory, and no log.
func quiet() middleware.Option {
	return middleware.Group(middleware.Store(memstore.New()), middleware.Logger(slog.New(slog.DiscardHandler)))
}

func readingOf(_ context.Context, r events.KinesisEventRecord) error {
	fmt.Println("store a reading of", r.Kinesis.PartitionKey)
	if r.Kinesis.PartitionKey == "broken" {
		return errors.New("no such sensor")
	}
	return nil
}

// Lambda delivers again from the record that failed.
func ExampleEachKinesisRecord() {
	wrapped := middleware.EachKinesisRecord(keyfuncs.KinesisRecord, readingOf, quiet())
	answer, err := wrapped(context.Background(), shard("kitchen", "broken", "cellar"))
	fmt.Println(answer.BatchItemFailures, err)
	// Output:
	// store a reading of kitchen
	// store a reading of broken
	// [{2} {3}] <nil>
}

// Records of other keys go on after a failure.
func ExampleOrderPerName() {
	wrapped := middleware.EachKinesisRecord(keyfuncs.KinesisRecord, readingOf, quiet(), middleware.OrderPerName(), middleware.Concurrency(1))
	answer, err := wrapped(context.Background(), shard("broken", "cellar"))
	fmt.Println(answer.BatchItemFailures, err)
	// Output:
	// store a reading of broken
	// store a reading of cellar
	// [{1}] <nil>
}

// One run is for both changes of the customer.
func ExampleOnlyLatest() {
	byCustomer := keyfuncs.EventFrom(keyfuncs.ByField(func(r events.KinesisEventRecord) string { return "anna" }), keyfuncs.KinesisRecord)
	wrapped := middleware.EachKinesisRecord(byCustomer, func(context.Context, events.KinesisEventRecord) error {
		fmt.Println("rebuild the index of the customer")
		return nil
	}, quiet(), middleware.OnlyLatest())
	answer, err := wrapped(context.Background(), shard("address", "phone"))
	fmt.Println(answer.BatchItemFailures, err)
	// Output:
	// rebuild the index of the customer
	// [] <nil>
}

// A change of an item is delivered twice.
func ExampleEachDynamoDBRecord() {
	wrapped := middleware.EachDynamoDBRecord(keyfuncs.DynamoDBRecord, func(_ context.Context, r events.DynamoDBEventRecord) error {
		fmt.Println(r.EventName, r.Change.Keys["customer"].String())
		return nil
	}, quiet())
	change := events.DynamoDBEventRecord{
		EventName: "MODIFY", EventSourceArn: "arn:aws:dynamodb:eu-central-1:123456789012:table/customers/stream/2026-11-21T08:15:30.123",
		Change: events.DynamoDBStreamRecord{SequenceNumber: "111", Keys: map[string]events.DynamoDBAttributeValue{"customer": events.NewStringAttribute("jane")}},
	}
	for range 2 {
		answer, err := wrapped(context.Background(), middleware.DynamoDBRecords{DynamoDBEvent: events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{change}}})
		fmt.Println(answer.BatchItemFailures, err)
	}
	// Output:
	// MODIFY jane
	// [] <nil>
	// [] <nil>
}

// With PartialAnswers, a mapping in provisioned mode repeats what failed.
func ExampleEachKafkaRecord() {
	wrapped := middleware.EachKafkaRecord(keyfuncs.KafkaRecord, func(_ context.Context, r events.KafkaRecord) error {
		if r.Value == "" {
			return errors.New("a record without a value")
		}
		fmt.Println("handle", r.Value)
		return nil
	}, quiet(), middleware.PartialAnswers())
	record := events.KafkaRecord{Topic: "orders", Offset: 15, Value: "eyJvcmRlciI6MX0="}
	empty := events.KafkaRecord{Topic: "orders", Offset: 16}
	answer, err := wrapped(context.Background(), events.KafkaEvent{Records: map[string][]events.KafkaRecord{"orders-0": {record, empty}}})
	fmt.Println(len(answer.BatchItemFailures), err)
	// Output:
	// handle eyJvcmRlciI6MX0=
	// 1 <nil>
}

func ExampleEachSNSRecord() {
	wrapped := middleware.EachSNSRecord(keyfuncs.SNSRecord, func(_ context.Context, r events.SNSEventRecord) error {
		fmt.Println(r.SNS.Message)
		return nil
	}, quiet())
	for range 2 {
		fmt.Println(wrapped(context.Background(), events.SNSEvent{Records: []events.SNSEventRecord{{SNS: events.SNSEntity{MessageID: "95df01b4", Message: "hello"}}}}))
	}
	// Output:
	// hello
	// <nil>
	// <nil>
}

// A subscriber of a Custom Event Bus gets an array of events.
func ExampleEachEventBridgeEvent() {
	wrapped := middleware.EachEventBridgeEvent(keyfuncs.CustomBusEvent, func(_ context.Context, e awsevents.CustomBusEvent) error {
		fmt.Println(string(e.Data))
		return nil
	}, quiet())
	batch := awsevents.CustomBusEvents{{
		Data: json.RawMessage(`{"order": 17}`), SystemMetadata: awsevents.CustomBusSystemMetadata{EventID: "7d5a3c7e"},
	}}
	for range 2 {
		fmt.Println(wrapped(context.Background(), batch))
	}
	// Output:
	// {"order": 17}
	// <nil>
	// <nil>
}

// The handler gets the body, and takes an attribute from the message.
func ExampleRecordFromContext() {
	wrapped := middleware.EachSQSBody(keyfuncs.ByField(func(o order) string { return o.ID }), func(ctx context.Context, o order) error {
		m, _ := middleware.RecordFromContext[events.SQSMessage](ctx)
		fmt.Println("order", o.ID, "was received", m.Attributes["ApproximateReceiveCount"], "times")
		return nil
	}, quiet())
	answer, err := wrapped(context.Background(), events.SQSEvent{Records: []events.SQSMessage{{
		MessageId: "m1", Body: `{"id": "7"}`, Attributes: map[string]string{"ApproximateReceiveCount": "2"},
	}}})
	fmt.Println(answer.BatchItemFailures, err)
	// Output:
	// order 7 was received 2 times
	// [] <nil>
}

// The client did not get its answer. What the bank knows is the answer of the
// next try.
func ExampleAskFor() {
	pay := func(context.Context, order) (string, error) {
		return "", middleware.Unknown(errors.New("the bank did not answer"))
	}
	receipt := func(_ context.Context, o order) (string, bool, error) { return "receipt for " + o.ID, true, nil }
	wrapped := middleware.WithLock(byOrder, pay, quiet(), middleware.OnCompleted(middleware.Replay), middleware.OnInterrupted(middleware.AskFor(receipt)))
	for range 3 {
		result, err := wrapped(context.Background(), order{ID: "7"})
		fmt.Printf("%q %v\n", result, err)
	}
	// Output:
	// "" the bank did not answer
	// "receipt for 7" <nil>
	// "receipt for 7" <nil>
}

// A secret is not kept: a duplicate gets no result.
func ExampleRememberFor() {
	wrapped := middleware.WithLock(byOrder, func(_ context.Context, o order) (string, error) { return "secret of " + o.ID, nil },
		quiet(), middleware.OnCompleted(middleware.Replay), middleware.RememberFor(func(result string) time.Duration {
			if strings.HasPrefix(result, "secret") {
				return 0
			}
			return time.Hour
		}))
	for range 2 {
		result, err := wrapped(context.Background(), order{ID: "7"})
		fmt.Printf("%q %v\n", result, err)
	}
	// Output:
	// "secret of 7" <nil>
	// "" <nil>
}

func ExampleMetrics() {
	wrapped := middleware.WithLock(byOrder, func(context.Context, order) error { return nil }, quiet(),
		middleware.Metrics(func(_ context.Context, t middleware.Totals) {
			fmt.Println(t.Outcomes[lock.OutcomeReleased], t.Outcomes[lock.OutcomeAlreadyCompleted], t.Requests)
		}))
	for range 2 {
		_ = wrapped(context.Background(), order{ID: "7"})
	}
	// Output:
	// 1 0 2
	// 0 1 1
}
