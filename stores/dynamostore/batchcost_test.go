package dynamostore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// TestRequestsOfABatch shows how many requests a batch of records takes, and
// how long, in fake time with a handler of 1 ms: not longer than without
// InBatches.
func TestRequestsOfABatch(t *testing.T) {
	t.Parallel()
	const cycle = 2*latency + time.Millisecond
	for _, c := range []struct {
		records, workers       int
		fresh, existing, known int           // the requests, at most
		took                   time.Duration // of new names, at most
	}{
		{1, 16, 2, 2, 2, cycle},
		{10, 16, 2, 3, 2, cycle},
		{100, 200, 10, 15, 10, cycle},
		{1000, 200, 100, 145, 100, 6 * cycle},
		{1000, 16, 130, 200, 130, 65 * cycle},
	} {
		t.Run(fmt.Sprintf("%d records, %d workers", c.records, c.workers), func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, func(t *testing.T, f *companyFixture) {
				deliver := func(what string, store *dynamostore.Store, event string, most int) {
					t.Helper()
					before, began := f.Requests(), time.Now()
					handleBatch(t, store, c.records, c.workers, event)
					n, took := f.Requests()-before, time.Since(began)
					t.Logf("%s: %d requests in %v", what, n, took)
					if n > most || took > c.took && what == "new" {
						t.Errorf("%s: %d requests in %v, want at most %d in %v", what, n, took, most, c.took)
					}
				}
				deliver("new", f.store, "1", c.fresh)
				deliver("known", f.store, "2", c.known)
				deliver("existing", dynamostore.New(clientOf(f), table).InBatches(), "3", c.existing)
			})
		})
	}
}

// handleBatch delivers one batch of SQS messages, each with a name of its own.
func handleBatch(t testing.TB, store *dynamostore.Store, records, workers int, event string) {
	t.Helper()
	key := func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
		return lock.Key{Name: m.Body, Event: m.MessageId}, nil
	}
	handler := middleware.EachSQSMessage(key, func(context.Context, events.SQSMessage) error {
		time.Sleep(time.Millisecond)
		return nil
	}, middleware.Store(store), middleware.Concurrency(workers), middleware.Logger(discard))
	e := events.SQSEvent{Records: make([]events.SQSMessage, records)}
	for i := range e.Records {
		e.Records[i] = events.SQSMessage{MessageId: fmt.Sprintf("%s-%d", event, i), Body: fmt.Sprint("order/", i)}
	}
	answer, err := handler(t.Context(), e)
	if err != nil || len(answer.BatchItemFailures) > 0 {
		t.Fatalf("%d failures, %v", len(answer.BatchItemFailures), err)
	}
}
