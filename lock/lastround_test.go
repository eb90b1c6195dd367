package lock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestLastRoundEndsBeforeTheDeadline shows that the last look of a waiter is
// one round of requests, however often its stamp is passed: the release and
// the answer must still fit in before the deadline. When the waiter looks is
// random, so the holder's lease ends at one of many times.
func TestLastRoundEndsBeforeTheDeadline(t *testing.T) { // F11, F12
	for lease := 25 * time.Second; lease < 27*time.Second; lease += 50 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			store := memstore.New()
			holder, err := lock.New(store, &lock.Options{Lease: lock.FixedLease(lease), Logger: discard})
			if err != nil {
				t.Fatal(err)
			}
			expect.Value(holder.Acquire(t.Context(), resource))(t)
			slow := fault.Hooks{Store: store, OnAcquire: func(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
				select {
				case <-time.After(900 * time.Millisecond):
				case <-ctx.Done():
					return driver.Row{}, false, ctx.Err()
				}
				row, ok, err := store.Acquire(ctx, c)
				// Somebody with a clock that is a little ahead gives up a claim.
				_, _, _ = store.Settle(ctx, &driver.Settlement{Name: c.Name, Token: "other", Abandon: true, Stamp: c.Stamp.Add(time.Minute), DeleteAfter: c.DeleteAfter})
				return row, ok, err
			}}
			l := expect.Value(lock.New(slow, &lock.Options{Lease: lock.UntilDeadline(), MaxWait: time.Hour, Logger: discard}))(t)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			deadline, _ := ctx.Deadline()
			_, err = l.Acquire(ctx, resource)
			if left := time.Until(deadline); err == nil || left < time.Second {
				t.Errorf("a lease of %v: %v, %v before the deadline, want an error 1s before it", lease, err, left)
			}
		})
	}
}
