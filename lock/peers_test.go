package lock_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// The tests in files of this name repeat what went wrong in other libraries,
// with a public report for each. docs/TESTING.md has them all.

func newLocker(t *testing.T, store driver.Store, o lock.Options) *lock.Locker {
	t.Helper()
	o.Logger = discard
	l := expect.Value(lock.New(store, &o))(t)
	return l
}

// renewals counts the renewals of a store, and those under way at the same
// time.
type renewals struct {
	driver.Store
	takes           time.Duration // each
	sent, now, most atomic.Int32
}

func (r *renewals) Renew(ctx context.Context, n *driver.Renewal) (driver.Row, bool, error) {
	r.sent.Add(1)
	if now := r.now.Add(1); now > r.most.Load() {
		r.most.Store(now)
	}
	defer r.now.Add(-1)
	select {
	case <-time.After(r.takes):
	case <-ctx.Done():
		return driver.Row{}, false, ctx.Err()
	}
	return r.Store.Renew(ctx, n)
}

// TestRetryAfterTimeout: a function that timed out left its record in progress
// for as long as a result is kept, so that every retry was refused
// (powertools-lambda-python#738). Here the name is available at most 8 s after
// the deadline at which the platform killed it, before the first retry of an
// asynchronous invocation.
func TestRetryAfterTimeout(t *testing.T) { // F19
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
		defer cancel()
		l := newLocker(t, store, untilDeadline)
		lk := expect.Value(l.Acquire(ctx, event("e1")))(t)
		<-ctx.Done()
		lk.Kill()
		killed := time.Now()
		if err := l.Do(t.Context(), event("e1"), nothing); !isHeld(err) {
			t.Errorf("at the deadline: %v, want held", err)
		}
		time.Sleep(time.Until(killed.Add(time.Minute)))
		if err := l.Do(t.Context(), event("e1"), nothing); err != nil {
			t.Errorf("the first retry, a minute after the kill: %v", err)
		}
	})
}

// TestNoTimeRemains: a remaining time of 0 ms counted as unknown, so the record
// was stored without an end, and after the kill no retry ever ran
// (powertools-lambda-python#4759). Here nothing is stored.
func TestNoTimeRemains(t *testing.T) { // F12, F22
	for name, left := range map[string]time.Duration{"none": 0, "680 ms too late": -680 * time.Millisecond, "1 ms": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memstore.New()
				ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(left))
				defer cancel()
				if _, err := newLocker(t, store, untilDeadline).Acquire(ctx, event("e1")); !errors.As(err, new(*lock.DeadlineError)) {
					t.Errorf("got %v, want a DeadlineError", err)
				}
				if row, err := store.Read(t.Context(), "/resource"); err != nil || !row.Unknown() {
					t.Errorf("stored %+v, error %v", row, err)
				}
				if err := newLocker(t, store, lock.Options{}).Do(t.Context(), event("e1"), nothing); err != nil {
					t.Errorf("the retry: %v", err)
				}
			})
		})
	}
}

// TestNoDeadlineIsNoOrphan: a record without a deadline counted as one whose
// owner had died, and a second invocation took it while the first was running
// (powertools-lambda-python#8386, powertools-lambda-typescript#5678). Here the
// lease always has an end, and is renewed.
func TestNoDeadlineIsNoOrphan(t *testing.T) { // F22
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, memstore.New(), untilDeadline)
		ctx := context.WithoutCancel(t.Context())
		err := l.Do(ctx, event("e1"), func(ctx context.Context) error {
			for range 60 {
				if lease, _ := lock.FromContext(ctx); !lease.Until.After(time.Now()) {
					t.Fatalf("the lease ends at %v", lease.Until)
				}
				if err := l.Do(context.WithoutCancel(t.Context()), event("e1"), func(context.Context) error {
					t.Error("a second run while the first goes on")
					return nil
				}); !isHeld(err) {
					t.Fatalf("a duplicate got %v, want held", err)
				}
				time.Sleep(10 * time.Second)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestHeartbeatOfNextLock: a client whose heartbeat had just ended with its
// last lock did not start it again for the next one, which expired unnoticed
// (dynamolock#14). Here every lock has a heartbeat of its own.
func TestHeartbeatOfNextLock(t *testing.T) { // F20
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, memstore.New(), lock.Options{Lease: lock.Heartbeat(9 * time.Second)})
		for range 3 {
			lk := expect.Value(l.Acquire(t.Context(), resource))(t)
			time.Sleep(time.Minute)
			if err := lk.Context().Err(); err != nil {
				t.Errorf("the lock was not renewed: %v", context.Cause(lk.Context()))
			}
			expect.OK(t, lk.Release())
		}
	})
}

// TestSlowHeartbeat: when a round of renewals took longer than two periods, a
// second heartbeat was started beside the first, and so on (dynamolock#15).
// Here one request is under way at a time, and none is left at the end:
// synctest fails if a goroutine is.
func TestSlowHeartbeat(t *testing.T) { // F4, F17
	synctest.Test(t, func(t *testing.T) {
		var plan fault.Script
		var late fault.Kept
		// A round takes 7 s of its period of 10 s: each request has one second, and six
		// of seven hang.
		round := append(slices.Repeat([]fault.Fault{fault.Hang}, 6), fault.None)
		plan.Plan(fault.Renew, slices.Repeat(round, 100)...)
		slow := &renewals{Store: fault.NewStore(memstore.New(), &plan, &late), takes: 500 * time.Millisecond}
		l := newLocker(t, slow, lock.Options{})
		lk := expect.Value(l.Acquire(t.Context(), resource))(t)
		time.Sleep(10 * time.Minute)
		if err := lk.Context().Err(); err != nil {
			t.Errorf("lost: %v", context.Cause(lk.Context()))
		}
		expect.OK(t, lk.Release())
		if sent, most := slow.sent.Load(), slow.most.Load(); sent < 200 || most != 1 {
			t.Errorf("%d renewals, up to %d at the same time; want one after the other", sent, most)
		}
		if now := slow.now.Load(); now != 0 {
			t.Errorf("%d renewals under way after the release", now)
		}
	})
}

// TestHeartbeatEndsWithItsWork: a heartbeat could not be stopped except by an
// unlock, so work that was interrupted before its unlock kept the name for as
// long as the process lived (dynamolock#560). Here it ends with the work,
// however that ends, and with the lease.
func TestHeartbeatEndsWithItsWork(t *testing.T) { // F17, F18, F20
	for name, end := range map[string]func(*renewals, *lock.Locker){
		"the goroutine ends": func(_ *renewals, l *lock.Locker) {
			_ = l.Do(context.Background(), resource, func(context.Context) error { runtime.Goexit(); return nil })
		},
		"a panic that is recovered": func(_ *renewals, l *lock.Locker) {
			defer func() { _ = recover() }()
			_ = l.Do(context.Background(), resource, func(context.Context) error { panic("interrupted") })
		},
		"the request is cancelled": func(_ *renewals, l *lock.Locker) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			_ = l.Do(ctx, resource, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		},
		"left without an unlock": func(_ *renewals, l *lock.Locker) {
			if lk, err := l.Acquire(context.Background(), resource); err == nil {
				lk.Kill()
				time.Sleep(12 * time.Second) // to the end of the lease
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &renewals{Store: memstore.New()}
				l := newLocker(t, store, lock.Options{Lease: lock.Heartbeat(12 * time.Second)})
				done := make(chan struct{})
				go func() {
					defer close(done)
					end(store, l)
				}()
				<-done
				sent := store.sent.Load()
				time.Sleep(time.Second)
				if err := l.Do(t.Context(), resource, nothing); err != nil {
					t.Errorf("the name is still held: %v", err)
				}
				time.Sleep(time.Hour)
				if n := store.sent.Load() - sent; n != 0 {
					t.Errorf("%d renewals after the work", n)
				}
			})
		})
	}
	t.Run("the lock is lost", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := &renewals{Store: memstore.New()}
			l := newLocker(t, store, lock.Options{Lease: lock.Heartbeat(12 * time.Second)})
			lk := expect.Value(l.Acquire(t.Context(), resource))(t)
			token := readRow(t, store, "/resource").Token
			if _, ok, err := store.Settle(t.Context(), &driver.Settlement{Name: "/resource", Token: token}); !ok || err != nil { // by hand
				t.Fatal(ok, err)
			}
			time.Sleep(time.Hour)
			if n := store.sent.Load(); n != 1 {
				t.Errorf("%d renewals of a lock that is lost, want the one that found out", n)
			}
			_ = lk.Release()
		})
	})
}

// TestWaiterNeedsNoWholeLease: a client that met a stale lock had to watch it
// for a whole lease, which at 15 minutes used up an invocation
// (amazon-dynamodb-lock-client#34). Here the end of the lease is in the row: it
// is taken immediately if it has passed, and just after it otherwise.
func TestWaiterNeedsNoWholeLease(t *testing.T) { // F19, F38
	for name, c := range map[string]struct{ asks, waits time.Duration }{
		"after the lease":      {16 * time.Minute, 0},
		"before its end":       {14*time.Minute + 58*time.Second, 4 * time.Second},
		"in the middle":        {8 * time.Minute, 7*time.Minute + 2*time.Second},
		"immediately after it": {15*time.Minute + 2*time.Second + time.Microsecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memstore.New()
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
				defer cancel()
				dead := expect.Value(newLocker(t, store, untilDeadline).Acquire(ctx, resource))(t)
				dead.Kill()
				time.Sleep(c.asks)
				began := time.Now()
				o := untilDeadline
				o.MaxWait = time.Hour
				invocation, stop := context.WithTimeout(t.Context(), 15*time.Minute)
				defer stop()
				next := expect.Value(newLocker(t, store, o).Acquire(invocation, resource))(t)
				if took := time.Since(began); took < c.waits || took > c.waits+100*time.Millisecond {
					t.Errorf("waited for %v, want %v", took, c.waits)
				}
				expect.OK(t, next.Release())
			})
		})
	}
}

// refusesOwn applies a claim and refuses it with the row that the claim made,
// as a store does whose client has repeated the request by itself.
func refusesOwn(store driver.Store) driver.Store {
	return fault.Hooks{Store: store, OnAcquire: func(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
		row, _, err := store.Acquire(ctx, c)
		return row, false, err
	}}
}

// TestOwnLockIsNotAnothers: a conditional write was applied, its answer was
// lost, and the repeated write was refused because of the lock that the first
// had made; the lock was reported as held by another, and nobody released it
// (opentofu#4405). Here the refusal shows the claim's own token.
func TestOwnLockIsNotAnothers(t *testing.T) { // F1
	for _, f := range []fault.Fault{fault.ApplyThenDrop, fault.ApplyThenFail, fault.ApplyThenHang, fault.Truncate} {
		t.Run(f.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var plan fault.Script
				var late fault.Kept
				store := memstore.New()
				l := newLocker(t, fault.NewStore(refusesOwn(store), &plan, &late), lock.Options{})
				plan.Plan(fault.Acquire, f)
				lk, err := l.Acquire(t.Context(), resource)
				if err != nil {
					t.Fatalf("got %v", err)
				}
				expect.OK(t, lk.Release())
				if row := readRow(t, store, "/resource"); row.Token != "" {
					t.Errorf("the lock was not released: %+v", row)
				}
			})
		})
	}
}

// TestTimedOutWithdrawal: a function waited for its bank until it timed out,
// and the retry withdrew the money again (powertools-lambda-python#8049). Here
// the bank is not asked again, although all that the work has seen is the end
// of its context.
func TestTimedOutWithdrawal(t *testing.T) { // F19
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, memstore.New(), lock.Options{OnInterrupted: lock.FailInterrupted})
		withdrawn := 0
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			err := l.Do(ctx, event("withdrawal"), func(ctx context.Context) error {
				withdrawn++
				<-ctx.Done()
				return ctx.Err()
			})
			cancel()
			if err == nil {
				t.Error("the withdrawal counts as done")
			}
		}
		if withdrawn != 1 {
			t.Errorf("withdrawn %d times", withdrawn)
		}
	})
}
