package lock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// TestImplausibleDeadline shows that a deadline far in the past is ignored: no
// invocation has run since then, and a missing deadline header may read as
// 1970.
func TestImplausibleDeadline(t *testing.T) { // F22
	for name, ago := range map[string]time.Duration{"1970": time.Since(time.Unix(0, 0)), "two hours ago": 2 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-ago))
				defer cancel()
				err := newFixture(t).locker(untilDeadline).Do(ctx, resource, func(ctx context.Context) error {
					if err := ctx.Err(); err != nil {
						t.Errorf("the work begins with a context that has ended: %v", err)
					}
					if lease, _ := lock.FromContext(ctx); time.Until(lease.Until) != lock.DefaultLease {
						t.Errorf("a lease of %v, want a heartbeat", time.Until(lease.Until))
					}
					time.Sleep(time.Minute)
					return ctx.Err()
				})
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestDeadlineThatHasPassed(t *testing.T) { // F12
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.Sleep(5 * time.Second)
		if _, err := newFixture(t).locker(untilDeadline).Acquire(ctx, resource); !errors.As(err, new(*lock.DeadlineError)) {
			t.Errorf("got %v, want a DeadlineError", err)
		}
	})
}

// TestLongestDeadline shows that the longest deadline of a managed instance is
// like any other: the work has the time to it less the reserve, a lease to it
// costs two requests, and a completion is tried until it. Beyond that it is not
// the platform's.
func TestLongestDeadline(t *testing.T) { // F7, F12, F22
	for name, c := range map[string]struct {
		timeout  time.Duration
		renewals bool          // while the work runs
		tries    time.Duration // of a completion of which five minutes are left, at least
	}{
		"on demand": {15 * time.Minute, false, 4 * time.Minute},
		"managed":   {90 * time.Minute, false, 4 * time.Minute},
		"nobody's":  {91 * time.Minute, true, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(untilDeadline)
				ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
				defer cancel()
				err := l.Do(ctx, event("e1"), func(ctx context.Context) error {
					if d, _ := ctx.Deadline(); time.Until(d) != c.timeout-time.Second {
						t.Errorf("the work has %v", time.Until(d))
					}
					<-ctx.Done()
					return nil
				})
				if n := f.faulty.Requests(fault.Renew); err != nil || n > 0 != c.renewals {
					t.Errorf("%v, %d renewals", err, n)
				}

				ctx, cancel = context.WithTimeout(t.Context(), c.timeout)
				defer cancel()
				lk := expect.Value(l.Acquire(ctx, event("e2")))(t)
				f.faulty.Always(fault.Release, fault.Throttle)
				if !c.renewals {
					time.Sleep(c.timeout - 5*time.Minute)
				}
				start := time.Now()
				if err, took := lk.Complete(), time.Since(start); !isStoreError(err) || took < c.tries || c.renewals && took > time.Minute {
					t.Errorf("completion: %v after %v", err, took)
				}
			})
		})
	}
}

// TestRequestContext shows that the context of a request ends at its deadline,
// even if nobody calls Done.
func TestRequestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.faulty.Store = fault.Hooks{Store: f.faulty.Store, OnAcquire: func(ctx context.Context, _ *driver.Claim) (driver.Row, bool, error) {
			deadline, _ := ctx.Deadline()
			time.Sleep(time.Until(deadline) + time.Millisecond)
			if err, cause := ctx.Err(), context.Cause(ctx); err != context.DeadlineExceeded || cause != context.DeadlineExceeded {
				t.Errorf("after its deadline the context says %v, %v", err, cause)
			}
			return driver.Row{}, false, errors.New("no answer")
		}}
		if _, err := f.locker(lock.Options{}).Acquire(t.Context(), resource); !isStoreError(err) {
			t.Fatal(err)
		}
	})
}

// TestLateCompletionHasTime shows that work that returns at its deadline or
// later still has a moment to complete: the process may be killed later, or not
// at all.
func TestLateCompletionHasTime(t *testing.T) { // F16
	for _, late := range []time.Duration{0, time.Second} {
		t.Run(fmt.Sprintf("%v late", late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.faulty.Store = &slowRelease{Store: f.faulty.Store, takes: 200 * time.Millisecond}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				lk := expect.Value(f.locker(untilDeadline).Acquire(ctx, event("e1")))(t)
				time.Sleep(10*time.Second + late)
				if err := lk.Complete(); err != nil {
					t.Errorf("got %v, although the store needs only 200ms", err)
				}
			})
		})
	}
}

// TestCompletionRetriesUntilDeadline shows that a completion is tried until the
// deadline, because the work was done and there is time. A release is not: if
// it fails, the retry of the work waits for the end of the lease.
func TestCompletionRetriesUntilDeadline(t *testing.T) { // F7, F55
	for name, meets := range map[string]fault.Fault{"outage": fault.DropBefore, "throttled": fault.Throttle, "hung": fault.Hang} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(untilDeadline)
				lk, start := acquireForMinute(t, l, "e1")
				f.faulty.Always(fault.Release, meets)
				if err := lk.Release(); !isStoreError(err) || time.Since(start) > 2*time.Second {
					t.Errorf("release: %v after %v, want a StoreError within 2s", err, time.Since(start))
				}
				time.Sleep(62*time.Second - time.Since(start) + time.Millisecond)
				lk, _ = acquireForMinute(t, l, "e1")
				time.AfterFunc(50*time.Second, func() { f.faulty.Always(fault.Release, fault.None) })
				before := f.faulty.Requests(fault.Release)
				if err := lk.Complete(); err != nil {
					t.Errorf("completion in a store that was down for 50s of a minute: %v", err)
				}
				if n := f.faulty.Requests(fault.Release) - before; n > 90 {
					t.Errorf("%d requests", n)
				}
				lk, start = acquireForMinute(t, l, "e2")
				f.faulty.Always(fault.Release, meets)
				if err := lk.Complete(); !isStoreError(err) || time.Since(start) > time.Minute-100*time.Millisecond {
					t.Errorf("completion: %v after %v, want a StoreError before the deadline, with time for the response", err, time.Since(start))
				}
			})
		})
	}
}

// acquireForMinute acquires with a deadline in a minute and returns when it
// began.
func acquireForMinute(t *testing.T, l *lock.Locker, id string) (*lock.Lock, time.Time) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	start := time.Now()
	lk := expect.Value(l.Acquire(ctx, event(id)))(t)
	return lk, start
}

// TestCompletionLeavesTimeToRespond shows that a release or completion that
// hangs ends before the deadline. Otherwise the invocation would be killed, and
// the result of its work lost.
func TestCompletionLeavesTimeToRespond(t *testing.T) { // F7, F12, P7
	for _, timeout := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 30 * time.Second} {
		for _, works := range []string{"until its context ends", "longer"} {
			for name, end := range map[string]func(*lock.Lock) error{"release": (*lock.Lock).Release, "complete": func(lk *lock.Lock) error { return lk.Complete() }} {
				t.Run(fmt.Sprintf("timeout %v, works %s, %s", timeout, works, name), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						f := newFixture(t)
						f.faulty.Always(fault.Release, fault.Hang)
						ctx, cancel := context.WithTimeout(t.Context(), timeout)
						defer cancel()
						lk := expect.Value(f.locker(untilDeadline).Acquire(ctx, event("e1")))(t)
						<-lk.Context().Done()
						deadline, _ := ctx.Deadline()
						if works == "longer" {
							time.Sleep(time.Until(deadline) - 10*time.Millisecond)
						}
						if err := end(lk); !isStoreError(err) || !time.Now().Before(deadline) {
							t.Errorf("got %v, %v before the deadline", err, time.Until(deadline))
						}
					})
				})
			}
		}
	}
}

// TestHeartbeatContinuesDuringCompletion shows that no duplicate gets the name
// while a completion is tried for longer than the lease.
func TestHeartbeatContinuesDuringCompletion(t *testing.T) { // F7, F55
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		lk := expect.Value(f.locker(lock.Options{Lease: lock.Heartbeat(4 * time.Second)}).Acquire(ctx, event("e1")))(t)
		f.faulty.Always(fault.Release, fault.Throttle)
		time.AfterFunc(time.Minute, func() { f.faulty.Always(fault.Release, fault.None) })
		completed := make(chan error)
		go func() { completed <- lk.Complete() }()
		for range 55 {
			time.Sleep(time.Second)
			if _, err := f.locker(lock.Options{Lease: lock.FixedLease(10 * time.Second)}).Acquire(t.Context(), event("e1")); !isHeld(err) {
				t.Fatalf("a duplicate got %v while the completion was tried", err)
			}
		}
		if err := <-completed; err != nil {
			t.Errorf("completion in a store that was down for a minute of five: %v", err)
		}
	})
}

// TestCompletionOutlivesItsLease shows that nothing is reported of renewals
// that fail while a completion is tried, even if the lease ends: the completion
// decides.
func TestCompletionOutlivesItsLease(t *testing.T) { // F7, F55
	for name, c := range map[string]struct {
		work     time.Duration
		renewals fault.Fault
		before   []lock.Outcome // of the completion
	}{
		"renewals have no answer":     {0, fault.DropBefore, nil},
		"the last renewal was denied": {6500 * time.Millisecond, fault.Deny, []lock.Outcome{lock.OutcomeStoreFailed, lock.OutcomeStoreFailed}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				lk := expect.Value(f.locker(lock.Options{Lease: lock.Heartbeat(9 * time.Second)}).Acquire(ctx, event("e1")))(t)
				f.faulty.Always(fault.Renew, c.renewals)
				time.Sleep(c.work)
				f.faulty.Always(fault.Release, fault.Throttle)
				time.AfterFunc(20*time.Second, func() { f.faulty.Always(fault.Release, fault.None) })
				if err := lk.Complete(); err != nil {
					t.Errorf("got %v, although nobody took the name", err)
				}
				f.wantOutcomes(append(append([]lock.Outcome{lock.OutcomeAcquired}, c.before...), lock.OutcomeReleased)...)
			})
		})
	}
}

// TestCompleteWithin shows that CompleteWithin limits the tries, for a caller
// who waits for the result.
func TestCompleteWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.faulty.Always(fault.Release, fault.Throttle)
		o := untilDeadline
		o.CompleteWithin = 5 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		lk := expect.Value(f.locker(o).Acquire(ctx, event("e1")))(t)
		start := time.Now()
		if err := lk.Complete(); !isStoreError(err) || time.Since(start) > 5*time.Second || time.Since(start) < 4*time.Second {
			t.Errorf("got %v after %v, want a StoreError after 5s", err, time.Since(start))
		}
	})
}

// TestThrottlingDuringWait shows that a waiter goes on if it is throttled now
// and then.
func TestThrottlingDuringWait(t *testing.T) { // F8
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		holder := f.mustAcquire(f.locker(lock.Options{}), resource)
		time.AfterFunc(5*time.Minute, func() { _ = holder.Release() })
		for _, at := range []time.Duration{5 * time.Second, 30 * time.Second, time.Minute} {
			time.AfterFunc(at, func() { f.faulty.Plan(fault.Acquire, fault.Throttle) })
		}
		lk := expect.Value(f.locker(lock.Options{MaxWait: 10 * time.Minute}).Acquire(t.Context(), resource))(t)
		_ = lk.Release()
	})
}

// TestCompletionRetryLimit shows the completions that are not tried until the
// deadline: a plain mutex has no event to complete, and a deadline that is days
// away is not the platform's.
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
				f := newFixture(t)
				f.faulty.Always(fault.Release, fault.DropBefore)
				ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
				defer cancel()
				lk := expect.Value(f.locker(untilDeadline).Acquire(ctx, c.key))(t)
				start := time.Now()
				if err := lk.Complete(); !isStoreError(err) || time.Since(start) > c.most {
					t.Errorf("got %v after %v, want a StoreError within %v", err, time.Since(start), c.most)
				}
			})
		})
	}
}

// TestHowLongASettlementTries shows how long a completion or release is tried
// against a store that does not answer.
func TestHowLongASettlementTries(t *testing.T) { // F7, F12, F55
	untilDeadline := lock.Options{Lease: lock.UntilDeadline()}
	with := func(change func(*lock.Options)) lock.Options {
		o := untilDeadline
		change(&o)
		return o
	}
	within := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, 3*time.Second)
	}
	detached := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithCancel(context.WithoutCancel(ctx))
	}
	for name, c := range map[string]struct {
		o           lock.Options
		timeout     time.Duration // of the caller's context; zero: none
		work        time.Duration
		release     bool
		least, most time.Duration
		inner       func(outer context.Context) (context.Context, context.CancelFunc) // nil: it has no lock around it
	}{
		"release, whatever CompleteWithin is": {
			with(func(o *lock.Options) { o.CompleteWithin = 100 * time.Millisecond }), time.Minute, 0, true, 1900 * time.Millisecond, 2 * time.Second, nil,
		},
		"completion at the end of a lease": {
			lock.Options{Lease: lock.FixedLease(10 * time.Second)}, 0, 9 * time.Second, false, 1900 * time.Millisecond, 2 * time.Second, nil,
		},
		"completion within a lock, detached from its deadline": {
			lock.Options{Lease: lock.FixedLease(10 * time.Second)}, time.Minute, 0, false, 9900 * time.Millisecond, 10 * time.Second, detached,
		},
		"completion within a lock, with an earlier deadline": {
			untilDeadline, time.Minute, 0, false, 2900 * time.Millisecond, 3 * time.Second, within,
		},
		"completion with a short reserve": {
			with(func(o *lock.Options) { o.Reserve = 60 * time.Millisecond }), 3 * time.Second, 2800 * time.Millisecond, false, 165 * time.Millisecond, 170 * time.Millisecond, nil,
		},
		"completion with CompleteWithin beyond the deadline": {
			with(func(o *lock.Options) { o.CompleteWithin = 5 * time.Second }), 3 * time.Second, 2500 * time.Millisecond, false, 395 * time.Millisecond, 400 * time.Millisecond, nil,
		},
		"completion in the last moment": {
			with(func(o *lock.Options) { o.Reserve = time.Second }), 3 * time.Second, 2960 * time.Millisecond, false, 15 * time.Millisecond, 20 * time.Millisecond, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				ctx, cancel := context.WithCancel(t.Context())
				if c.timeout > 0 {
					ctx, cancel = context.WithTimeout(ctx, c.timeout)
				}
				defer cancel()
				if c.inner != nil {
					ctx, cancel = c.inner(expect.Value(f.locker(c.o).Acquire(ctx, keyA))(t).Context())
					defer cancel()
				}
				lk := expect.Value(f.locker(c.o).Acquire(ctx, event("e1")))(t)
				time.Sleep(c.work)
				f.faulty.Always(fault.Release, fault.Hang)
				start, end := time.Now(), lk.Release
				if !c.release {
					end = func() error { return lk.Complete() }
				}
				if err, d := end(), time.Since(start); !isStoreError(err) || d < c.least || d > c.most {
					t.Errorf("got %v after %v, want a StoreError after %v to %v", err, time.Since(start), c.least, c.most)
				}
			})
		})
	}
}

// TestCompletionWithoutDeadline shows that a completion without a deadline is
// tried until the lease ends, which may be much longer than any other request.
func TestCompletionWithoutDeadline(t *testing.T) { // F7
	for answers, completes := range map[time.Duration]bool{25 * time.Second: true, time.Hour: false} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			l := f.locker(lock.Options{Lease: lock.Heartbeat(30 * time.Second)})
			lk, start := f.mustAcquire(l, event("e1")), time.Now()
			f.faulty.Always(fault.Renew, fault.DropBefore)
			f.faulty.Always(fault.Release, fault.DropBefore)
			up := time.AfterFunc(answers, func() { f.faulty.Always(fault.Release, fault.None) })
			defer up.Stop()
			err := lk.Complete()
			if took := time.Since(start); (err == nil) != completes || !completes && (took < 25*time.Second || took > 31*time.Second) {
				t.Errorf("the store answers after %v: completion %v after %v", answers, err, took)
			}
		})
	}
}
