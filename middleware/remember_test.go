package middleware_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// inProcess returns a client of DynamoDB that works in fake time.
func inProcess(server *fakedynamo.Server) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String("http://localhost"), Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
		HTTPClient: &http.Client{Transport: fault.InProcess{Handler: server}},
	})
}

// inBothStores runs the test with a store of each kind, in fake time.
func inBothStores(t *testing.T, name string, test func(*testing.T, driver.Store)) {
	t.Helper()
	for kind, open := range map[string]func(*testing.T) driver.Store{
		"memory": func(*testing.T) driver.Store { return memstore.New() },
		"DynamoDB": func(t *testing.T) driver.Store {
			client := inProcess(fakedynamo.New())
			expect.Must(t, dynamostore.EnsureTable(t.Context(), client, "locks"))
			return dynamostore.New(client, "locks")
		},
	} {
		t.Run(kind+name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { test(t, open(t)) })
		})
	}
}

// TestBatchOfOneNameComesAgain shows that only the failed record runs when
// Kafka delivers a whole batch again, however many of its records have the same
// name.
func TestBatchOfOneNameComesAgain(t *testing.T) { // F46
	t.Parallel()
	const records = 300
	inBothStores(t, "", func(t *testing.T, store driver.Store) {
		e := events.KafkaEvent{Records: map[string][]events.KafkaRecord{}}
		topic := fmt.Sprint("orders-", records)
		for i := range records {
			e.Records[topic+"-0"] = append(e.Records[topic+"-0"], events.KafkaRecord{
				Topic: topic, Offset: int64(i), Timestamp: events.MilliSecondsEpochTime{Time: time.UnixMilli(int64(1_763_740_000_000 + i))},
				Key: base64.StdEncoding.EncodeToString([]byte("customer-7")),
			})
		}
		var mu sync.Mutex
		ran := map[int64]int{}
		fails := true
		h := middleware.EachKafkaRecord(keyfuncs.EventFrom(keyfuncs.ByField(func(r events.KafkaRecord) string { return r.Topic + "/" + r.Key }), keyfuncs.KafkaRecord), func(_ context.Context, r events.KafkaRecord) error {
			mu.Lock()
			defer mu.Unlock()
			if ran[r.Offset]++; fails && r.Offset == int64(records-1) {
				return errors.New("boom")
			}
			return nil
		}, newFixture().options(middleware.Store(store))...)
		if _, err := h(t.Context(), e); !errors.As(err, new(*middleware.BatchError)) {
			t.Fatalf("the first delivery: %v", err)
		}
		fails = false
		for range 2 {
			if _, err := h(t.Context(), e); err != nil {
				t.Fatalf("a further delivery: %v", err)
			}
		}
		for offset, n := range ran {
			if want := 1 + int(offset)/(records-1); n != want {
				t.Errorf("record %d ran %d times, want %d", offset, n, want)
			}
		}
	})
}

// TestRememberEvents shows that so many events are remembered, also if they
// need more than one write unit.
func TestRememberEvents(t *testing.T) {
	t.Parallel()
	inBothStores(t, "", func(t *testing.T, store driver.Store) {
		ran, forgotten := 0, 0
		h := middleware.WithLock(byOrder, func(context.Context, order) error { ran++; return nil },
			newFixture().options(middleware.Store(store), engine(func(o *lock.Options) { o.RememberEvents = 60 }), middleware.Observe(func(_ context.Context, o lock.Observation) {
				forgotten += o.Forgotten
			}))...)
		deliver := func(from, to int) {
			for i := from; i < to; i++ {
				expect.Must(t, h(t.Context(), order{ID: fmt.Sprintf("%036d", i)}))
			}
		}
		deliver(0, 70)
		deliver(10, 70) // again
		if ran != 70 || forgotten != 10 {
			t.Errorf("ran %d times, %d forgotten; want the last 60 to be remembered", ran, forgotten)
		}
	})
}

// TestRememberedAsLongAsTheSourceKeeps shows that by default a completed event
// is remembered for as long as its source can deliver it again, and no longer.
func TestRememberedAsLongAsTheSourceKeeps(t *testing.T) {
	const day = 24 * time.Hour
	message := events.SQSMessage{MessageId: "m1", EventSource: "aws:sqs"}
	record := events.KafkaRecord{Topic: "orders"}
	keyOfAnything := func(context.Context, any) (lock.Key, error) { return lock.Key{Name: "n", Event: "1"}, nil }
	for name, c := range map[string]struct {
		deliver func(ran func() error, opts []middleware.Option) func(context.Context) error
		keeps   time.Duration
	}{
		"SQS message": {func(ran func() error, opts []middleware.Option) func(context.Context) error {
			h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error { return ran() }, opts...)
			return func(ctx context.Context) error {
				_, err := h(ctx, sqsBatch(message))
				return err
			}
		}, 4 * day},
		"SQS event": {func(ran func() error, opts []middleware.Option) func(context.Context) error {
			key := func(context.Context, events.SQSEvent) (lock.Key, error) { return lock.Key{Name: "n", Event: "1"}, nil }
			h := middleware.WithLock(key, func(context.Context, events.SQSEvent) error { return ran() }, opts...)
			return func(ctx context.Context) error { return h(ctx, events.SQSEvent{}) }
		}, 4 * day},
		"SQS event, any key": {func(ran func() error, opts []middleware.Option) func(context.Context) error {
			h := middleware.WithLock(keyOfAnything, func(context.Context, *events.SQSEvent) error { return ran() }, opts...)
			return func(ctx context.Context) error { return h(ctx, &events.SQSEvent{}) }
		}, 4 * day},
		"Kafka event, any key": {func(ran func() error, opts []middleware.Option) func(context.Context) error {
			h := middleware.WithLock(keyOfAnything, func(context.Context, events.KafkaEvent) error { return ran() }, opts...)
			return func(ctx context.Context) error { return h(ctx, events.KafkaEvent{}) }
		}, 7 * day},
		"Kafka record": {func(ran func() error, opts []middleware.Option) func(context.Context) error {
			h := middleware.EachKafkaRecord(keyfuncs.KafkaRecord, func(context.Context, events.KafkaRecord) error { return ran() }, opts...)
			return func(ctx context.Context) error {
				_, err := h(ctx, events.KafkaEvent{Records: map[string][]events.KafkaRecord{"orders-0": {record}}})
				return err
			}
		}, 7 * day},
		"order in a message without a lock": {func(ran func() error, opts []middleware.Option) func(context.Context) error {
			inner := middleware.WithLock(lockPerOrder, func(context.Context, order) error { return ran() }, opts...)
			none := func(context.Context, order) (lock.Key, error) { return lock.Key{}, keyfuncs.ErrNoLock }
			h := middleware.EachSQSBody(none, middleware.WithLock(none, inner, opts...), opts...)
			return func(ctx context.Context) error {
				_, err := h(ctx, queueBatch(`{"id":"1"}`))
				return err
			}
		}, 4 * day},
		"order in a message with FailOpen": {func(ran func() error, opts []middleware.Option) func(context.Context) error {
			inner := middleware.WithLock(lockPerOrder, func(context.Context, order) error { return ran() }, opts...)
			down := newFixture()
			down.faulty.Always(fault.Acquire, fault.DropBefore)
			h := middleware.EachSQSBody(middleware.RecordKey[order](keyfuncs.SQSMessage), inner, append(opts, middleware.Store(down.faulty), middleware.FailOpen())...)
			return func(ctx context.Context) error {
				_, err := h(ctx, queueBatch(`{"id":"1"}`))
				return err
			}
		}, 4 * day},
		"another type": {func(ran func() error, opts []middleware.Option) func(context.Context) error {
			h := middleware.WithLock(byOrder, func(context.Context, order) error { return ran() }, opts...)
			return func(ctx context.Context) error { return h(ctx, order{ID: "1"}) }
		}, day},
	} {
		for option, keeps := range map[string]time.Duration{"by default": c.keeps, "for an hour": time.Hour} {
			t.Run(name+" "+option, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					opts := newFixture().options()
					if option != "by default" {
						opts = append(opts, middleware.Remember(keeps))
					}
					ran := 0
					deliver := c.deliver(func() error { ran++; return nil }, opts)
					for at, want := range []int{1, 1, 2} { // at first, at the end of that time, after it
						expect.Must(t, deliver(t.Context()))
						if ran != want {
							t.Errorf("ran %d times after delivery %d, want %d", ran, at+1, want)
						}
						time.Sleep([]time.Duration{keeps - time.Minute, 2 * time.Minute, 0}[at])
					}
				})
			})
		}
	}
}

// TestOrderedEventsNeedNoRoom shows that a batch of events with an Order does
// not make the row of their name larger: their order tells that they are
// completed.
func TestOrderedEventsNeedNoRoom(t *testing.T) { // F32
	t.Parallel()
	f := newFixture()
	h := middleware.EachSQSMessage(keyfuncs.SQSFIFOMessage, func(context.Context, events.SQSMessage) error { return nil }, f.options()...)
	var messages []events.SQSMessage
	for i := range 100 {
		m := inGroup("g", message(fmt.Sprint(i), ""))
		m.Attributes["SequenceNumber"] = fmt.Sprintf("%020d", i)
		messages = append(messages, m)
	}
	for range 2 {
		if r, err := h(t.Context(), sqsBatch(messages...)); err != nil || len(r.BatchItemFailures) > 0 {
			t.Fatal(r, err)
		}
	}
	if n := f.count(lock.OutcomeAlreadyCompleted) + f.count(lock.OutcomeStale); n != 100 {
		t.Errorf("%d of 100 records were recognised", n)
	}
	if f.count(lock.OutcomeForgotten) == 0 {
		t.Error("the row keeps every event")
	}
}
