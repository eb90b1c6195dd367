package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
)

// TestImplausibleDeadline: a deadline header that is missing may read as 1970,
// and no invocation has run since then.
func TestImplausibleDeadline(t *testing.T) { // F22
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		l := r.locker(atDeadline)
		for name, deadline := range map[string]time.Time{"1970": time.Unix(0, 0), "an hour ago": time.Now().Add(-time.Hour)} {
			ctx, cancel := context.WithDeadline(t.Context(), deadline)
			defer cancel()
			err := l.Do(ctx, resource, func(ctx context.Context) error {
				if err := ctx.Err(); err != nil {
					t.Errorf("%s: the work begins with a context that has ended: %v", name, err)
				}
				if lease, _ := lock.FromContext(ctx); time.Until(lease.Until) != lock.DefaultLease {
					t.Errorf("%s: a lease of %v, want a heartbeat", name, time.Until(lease.Until))
				}
				time.Sleep(time.Minute)
				return ctx.Err()
			})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.Sleep(5 * time.Second)
		if _, err := l.Acquire(ctx, resource); !errors.As(err, new(*lock.DeadlineError)) {
			t.Errorf("a deadline that has just passed: %v, want a DeadlineError", err)
		}
	})
}

// contexts looks at the context of a request, after its time is over.
type contexts struct {
	driver.Store
	err, cause error
}

func (c *contexts) Acquire(ctx context.Context, _ *driver.Claim) (driver.Row, bool, error) {
	deadline, _ := ctx.Deadline()
	time.Sleep(time.Until(deadline) + time.Millisecond)
	c.err, c.cause = ctx.Err(), context.Cause(ctx)
	return driver.Row{}, false, errors.New("no answer")
}

// TestRequestContext: it ends at its deadline, whether or not anybody asks for Done.
func TestRequestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &contexts{Store: newRig(t).store}
		l, err := lock.New(c, &lock.Options{Logger: discard})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Acquire(t.Context(), resource); !isStoreError(err) {
			t.Fatal(err)
		}
		if c.err != context.DeadlineExceeded || c.cause != context.DeadlineExceeded {
			t.Errorf("after its deadline the context says %v, %v", c.err, c.cause)
		}
	})
}

// TestLateCompletionHasTime: work that returns after the deadline still has a moment to
// release, because nobody kills, or the kill comes later.
func TestLateCompletionHasTime(t *testing.T) { // F16
	for _, late := range []time.Duration{0, time.Second} {
		t.Run(late.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.store.Store = &slowRelease{Store: r.store.Store, takes: 200 * time.Millisecond}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				lk, err := r.locker(atDeadline).Acquire(ctx, event("e1"))
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(10*time.Second + late)
				if err := lk.Complete(nil); err != nil {
					t.Errorf("got %v, although the store needs 200ms only", err)
				}
			})
		})
	}
}

// TestCompletionRetriesUntilDeadline: the work is done and the time is there. What has
// failed is not worth it: its retry waits for the end of the lease.
func TestCompletionRetriesUntilDeadline(t *testing.T) { // F7, F55
	for name, fault := range map[string]locktest.Fault{"outage": locktest.DropBefore, "throttled": locktest.Throttle, "hung": locktest.Hang} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				l := r.locker(atDeadline)
				lk, start := forAMinute(t, l, "e1")
				r.store.Always(locktest.Release, fault)
				if err := lk.Release(); !isStoreError(err) || time.Since(start) > 2*time.Second {
					t.Errorf("release: %v after %v, want a StoreError within 2s", err, time.Since(start))
				}
				time.Sleep(62*time.Second - time.Since(start) + time.Millisecond)
				lk, _ = forAMinute(t, l, "e1")
				time.AfterFunc(50*time.Second, func() { r.store.Always(locktest.Release, locktest.None) })
				before := r.store.Requests(locktest.Release)
				if err := lk.Complete(nil); err != nil {
					t.Errorf("a store that was out for 50s of a minute: %v", err)
				}
				if n := r.store.Requests(locktest.Release) - before; n > 90 {
					t.Errorf("%d requests", n)
				}
				lk, start = forAMinute(t, l, "e2")
				r.store.Always(locktest.Release, fault)
				if err := lk.Complete(nil); !isStoreError(err) || time.Since(start) > time.Minute-100*time.Millisecond {
					t.Errorf("completion: %v after %v, want a StoreError before the deadline, with time for the answer", err, time.Since(start))
				}
			})
		})
	}
}

// forAMinute acquires with a deadline in a minute.
func forAMinute(t *testing.T, l *lock.Locker, id string) (*lock.Lock, time.Time) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	start := time.Now()
	lk, err := l.Acquire(ctx, event(id))
	if err != nil {
		t.Fatal(err)
	}
	return lk, start
}

// TestCompletionLeavesTimeToRespond: a settlement that hangs never takes an invocation past
// its deadline, which would kill it, and lose the result of work that kept its own.
func TestCompletionLeavesTimeToRespond(t *testing.T) { // F7, F12, P7
	for _, timeout := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 30 * time.Second} {
		for _, works := range []string{"until its context ends", "beyond it"} {
			for name, end := range map[string]func(*lock.Lock) error{"release": (*lock.Lock).Release, "complete": func(lk *lock.Lock) error { return lk.Complete(nil) }} {
				t.Run(timeout.String()+", "+works+", "+name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						r := newRig(t)
						r.store.Always(locktest.Release, locktest.Hang)
						ctx, cancel := context.WithTimeout(t.Context(), timeout)
						defer cancel()
						lk, err := r.locker(atDeadline).Acquire(ctx, event("e1"))
						if err != nil {
							t.Fatal(err)
						}
						<-lk.Context().Done()
						deadline, _ := ctx.Deadline()
						if works == "beyond it" {
							time.Sleep(time.Until(deadline) - 10*time.Millisecond)
						}
						if err := end(lk); !isStoreError(err) || !time.Now().Before(deadline) {
							t.Errorf("%v, %v before the deadline", err, time.Until(deadline))
						}
					})
				})
			}
		}
	}
}

// TestHeartbeatContinuesDuringCompletion: while a completion is tried for longer than the
// lease, no duplicate gets the name.
func TestHeartbeatContinuesDuringCompletion(t *testing.T) { // F7, F55
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		lk, err := r.locker(lock.Options{Lease: lock.Heartbeat(4 * time.Second)}).Acquire(ctx, event("e1"))
		if err != nil {
			t.Fatal(err)
		}
		r.store.Always(locktest.Release, locktest.Throttle)
		time.AfterFunc(time.Minute, func() { r.store.Always(locktest.Release, locktest.None) })
		done := make(chan error)
		go func() { done <- lk.Complete(nil) }()
		for range 55 {
			time.Sleep(time.Second)
			if _, err := r.locker(lock.Options{Lease: lock.FixedLease(10 * time.Second)}).Acquire(t.Context(), event("e1")); !isHeld(err) {
				t.Fatalf("a duplicate got %v while the completion was tried", err)
			}
		}
		if err := <-done; err != nil {
			t.Errorf("a store that was out for a minute of five: %v", err)
		}
	})
}

// TestCompleteWithin: somebody waits for the result.
func TestCompleteWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.store.Always(locktest.Release, locktest.Throttle)
		o := atDeadline
		o.CompleteWithin = 5 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		lk, err := r.locker(o).Acquire(ctx, event("e1"))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := lk.Complete(nil); !isStoreError(err) || time.Since(start) > 5*time.Second || time.Since(start) < 4*time.Second {
			t.Errorf("%v after %v, want a StoreError after 5s", err, time.Since(start))
		}
	})
}

// TestThrottlingDuringWait: a waiter that is turned away now and then goes on.
func TestThrottlingDuringWait(t *testing.T) { // F8
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		holder := r.mustAcquire(r.locker(lock.Options{}), resource)
		time.AfterFunc(5*time.Minute, func() { _ = holder.Release() })
		for _, at := range []time.Duration{5 * time.Second, 30 * time.Second, time.Minute} {
			time.AfterFunc(at, func() { r.store.Plan(locktest.Acquire, locktest.Throttle) })
		}
		lk, err := r.locker(lock.Options{MaxWait: 10 * time.Minute}).Acquire(t.Context(), resource)
		if err != nil {
			t.Fatal(err)
		}
		_ = lk.Release()
	})
}

// TestCompletionRetryLimit: a plain mutex has nothing to record, and a deadline that
// is days away is not the platform's.
func TestCompletionRetryLimit(t *testing.T) {
	for name, c := range map[string]struct {
		key     lock.Key
		timeout time.Duration
		most    time.Duration
	}{
		"mutex":                {resource, 10 * time.Minute, 2 * time.Second},
		"deadline in two days": {event("e1"), 48 * time.Hour, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.store.Always(locktest.Release, locktest.DropBefore)
				ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
				defer cancel()
				lk, err := r.locker(atDeadline).Acquire(ctx, c.key)
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				if err := lk.Complete(nil); !isStoreError(err) || time.Since(start) > c.most {
					t.Errorf("%v after %v, want a StoreError within %v", err, time.Since(start), c.most)
				}
			})
		})
	}
}
