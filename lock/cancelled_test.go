package lock_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestCancelledClaim shows that a claim whose context has ended is not a
// failure of the store, and that a request that was never sent is not counted.
func TestCancelledClaim(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		context  func(context.Context) (context.Context, context.CancelFunc)
		outcome  lock.Outcome
		requests int
	}{
		"before": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		}, lock.OutcomeRefused, 0},
		"meanwhile": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(10*time.Millisecond, cancel)
			return ctx, cancel
		}, lock.OutcomeRefused, 2}, // with the request that gives up the claim
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := fault.NewScripted(memstore.New())
				store.Plan(fault.Acquire, fault.Hang)
				var seen []lock.Observation
				l, err := lock.New(store, &lock.Options{Logger: slog.New(slog.DiscardHandler), Observe: func(_ context.Context, o lock.Observation) { seen = append(seen, o) }})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := c.context(t.Context())
				defer cancel()
				_, err = l.Acquire(ctx, lock.Key{Name: "n"})
				var e *lock.StoreError
				if !errors.As(err, &e) || !errors.Is(err, context.Canceled) || c.requests == 0 && (e.Requests != 0 || !e.Unapplied) {
					t.Errorf("%+v", err)
				}
				if len(seen) != 1 || seen[0].Outcome != c.outcome || seen[0].Requests != c.requests {
					t.Errorf("observed %+v", seen)
				}
			})
		})
	}
}
