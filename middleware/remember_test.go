package middleware_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// bothStores forget in the same way, since the engine decides what.
func bothStores(t *testing.T) map[string]lock.Store {
	t.Helper()
	srv := httptest.NewServer(fakedynamo.New())
	t.Cleanup(srv.Close)
	client := dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String(srv.URL), Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
	if err := dynamostore.EnsureTable(t.Context(), client, "locks"); err != nil {
		t.Fatal(err)
	}
	return map[string]lock.Store{"memory": memstore.New(), "DynamoDB": dynamostore.New(client, "locks")}
}

// TestBatchOfOneNameComesAgain: Kafka delivers a whole batch again for one failed record,
// and only that one runs, however many records have the same key.
func TestBatchOfOneNameComesAgain(t *testing.T) { // F46
	t.Parallel()
	for name, store := range bothStores(t) {
		for _, records := range []int{40, 300} {
			t.Run(fmt.Sprintf("%s, %d records", name, records), func(t *testing.T) {
				t.Parallel()
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
				h := middleware.EachKafkaRecord(keyfuncs.KafkaKeyRecord, func(_ context.Context, r events.KafkaRecord) error {
					mu.Lock()
					defer mu.Unlock()
					if ran[r.Offset]++; fails && r.Offset == int64(records-1) {
						return errors.New("boom")
					}
					return nil
				}, newQuiet().with(middleware.Store(store))...)
				if err := h(t.Context(), e); !errors.As(err, new(*middleware.BatchError)) {
					t.Fatalf("the first delivery: %v", err)
				}
				fails = false
				for range 2 {
					if err := h(t.Context(), e); err != nil {
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
	}
}

// TestRememberAtLeast: more than a row of one write unit has room for.
func TestRememberAtLeast(t *testing.T) {
	t.Parallel()
	for name, store := range bothStores(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ran, forgotten := 0, 0
			h := middleware.WithLock(byOrder, func(context.Context, order) error { ran++; return nil },
				newQuiet().with(middleware.Store(store), middleware.RememberAtLeast(60), middleware.Observe(func(_ context.Context, o lock.Observation) {
					forgotten += o.Forgotten
				}))...)
			deliver := func(from, to int) {
				for i := from; i < to; i++ {
					if err := h(t.Context(), order{ID: fmt.Sprintf("%036d", i)}); err != nil {
						t.Fatal(err)
					}
				}
			}
			deliver(0, 70)
			deliver(10, 70) // again
			if ran != 70 || forgotten != 10 {
				t.Errorf("ran %d times, %d forgotten; want the last 60 to be remembered", ran, forgotten)
			}
		})
	}
}
