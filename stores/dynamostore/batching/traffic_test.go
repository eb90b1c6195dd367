package batching_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// TestTrafficOfADelivery compares all that the claims of one delivery send, ten
// at a time, after each of what may come between. One request that ended
// otherwise must not let the later ones leave before they are full.
func TestTrafficOfADelivery(t *testing.T) { // F11, F39
	t.Parallel()
	const full = "BatchExecuteStatement 1×10, 1 at once"
	hidden := func(c *driver.Claim) { c.Event = strings.Repeat("é", 10) } // no PartiQL
	for name, c := range map[string]struct {
		claims int
		change func(*driver.Claim) // the first claim
		fault  fakedynamo.Fault    // of the requests with the first claim
		gives  time.Duration       // up; zero: it does not
		want   string
	}{
		"one alone":             {claims: 1, want: "UpdateItem 1×1, 1 at once"},
		"all":                   {claims: 10, want: full},
		"no PartiQL":            {claims: 10, change: hidden, want: "BatchExecuteStatement 1×9, UpdateItem 1×1, 2 at once"},
		"throttled":             {claims: 10, fault: fakedynamo.Throttle, want: full},
		"the answer is lost":    {claims: 10, fault: fakedynamo.ApplyThenDrop, want: full},
		"one gives up":          {claims: 10, gives: time.Microsecond, want: full},
		"one gives up, waiting": {claims: 9, gives: time.Microsecond, want: "BatchExecuteStatement 1×8, 1 at once"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, func(t *testing.T, f *fixture) {
				ctx := invocation.WithBatch(t.Context(), &invocation.Batch{Claims: 10})
				send := func(claims []*driver.Claim, gives time.Duration) string {
					var all sync.WaitGroup
					for i, claim := range claims {
						all.Go(func() {
							ctx := ctx
							if i == 0 && gives > 0 {
								var cancel func()
								ctx, cancel = context.WithTimeout(ctx, gives)
								defer cancel()
							}
							_, _, _ = f.store.Acquire(ctx, claim)
						})
					}
					all.Wait()
					return f.meter.Take()
				}
				f.meter.Take()
				claims := claimsOf("between", c.claims)
				if c.change != nil {
					c.change(claims[0])
				}
				f.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
					if len(r.Keys) > 0 {
						return c.fault
					}
					return fakedynamo.None
				})
				if got := send(claims, c.gives); got != c.want {
					t.Errorf("sent %s, want %s", got, c.want)
				}
				f.OnRequest(nil)
				for range 12 {
					began := time.Now()
					if got := send(claimsOf("later"+name, 10), 0); got != full || time.Since(began) != latency {
						t.Errorf("then %s in %v, want %s in %v", got, time.Since(began), full, latency)
					}
				}
			})
		})
	}
}

// TestRequestsOfABatch shows how many requests a batch of records takes, and
// how long, in fake time with a handler of 1 ms: not longer than one by one.
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
			inFakeTime(t, func(t *testing.T, f *fixture) {
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
				deliver("existing", storeOf(f), "3", c.existing)
			})
		})
	}
}

// handleBatch handles one batch of events, each with a name of its own.
func handleBatch(t testing.TB, store *dynamostore.Store, records, workers int, event string) {
	t.Helper()
	locker := expect.Value(lock.New(store, &lock.Options{Logger: slog.New(slog.DiscardHandler)}))(t)
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
