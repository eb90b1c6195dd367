package dynamostore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
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

// handleBatch handles one batch of events, each with a name of its own.
func handleBatch(t testing.TB, store *dynamostore.Store, records, workers int, event string) {
	t.Helper()
	locker := expect.Value(lock.New(store, &lock.Options{Logger: discard}))(t)
	ctx := invocation.WithBatch(t.Context(), &invocation.Batch{Claims: min(records, workers)}) // as package middleware does
	next := make(chan int, records)
	for i := range records {
		next <- i
	}
	close(next)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range next {
				key := lock.Key{Name: fmt.Sprint("order/", i), Event: fmt.Sprintf("%s-%d", event, i)}
				expect.OK(t, locker.Do(ctx, key, func(context.Context) error { time.Sleep(time.Millisecond); return nil }))
			}
		})
	}
	wg.Wait()
}
