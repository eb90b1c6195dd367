package lock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestEveryRequestIsObserved shows that the requests of all observations add up
// to those that the store got, each counted once.
func TestEveryRequestIsObserved(t *testing.T) {
	held := func(f *fixture) *lock.Lock {
		return f.mustAcquire(f.locker(lock.Options{}), event("e1"))
	}
	declined := func(t *testing.T, f *fixture, lk *lock.Lock) {
		_ = transact(t, f, lk, func(ctx context.Context, _ *driver.Settlement) (driver.Row, bool, error) {
			_, _, _ = f.faulty.Settle(ctx, &driver.Settlement{Name: "/other", Token: "other"})
			return driver.Row{}, false, &driver.Error{Lasting: true, Answered: true, Unapplied: true, Err: errors.New("insufficient balance")}
		})
	}
	for name, run := range map[string]func(t *testing.T, f *fixture){
		"completed": func(_ *testing.T, f *fixture) { _ = held(f).Complete() },
		"waited in vain, and abandoned": func(t *testing.T, f *fixture) {
			lk := held(f)
			f.faulty.Plan(fault.Acquire, fault.None, fault.ApplyThenDrop)
			_, _ = f.locker(lock.Options{MaxWait: 3 * time.Second}).Acquire(t.Context(), event("e2"))
			_ = lk.Release()
		},
		"the store does not answer": func(t *testing.T, f *fixture) {
			f.faulty.Always(fault.Acquire, fault.ApplyThenDrop)
			_, _ = f.locker(lock.Options{}).Acquire(t.Context(), resource)
		},
		"renewed": func(_ *testing.T, f *fixture) {
			lk := held(f)
			time.Sleep(time.Minute)
			_ = lk.Complete()
		},
		"a renewal is interrupted": func(_ *testing.T, f *fixture) {
			lk := held(f)
			f.faulty.Always(fault.Renew, fault.Throttle)
			time.Sleep(11 * time.Second)
			_ = lk.Release()
		},
		"the result is dropped, and events are forgotten": func(t *testing.T, f *fixture) {
			l := f.locker(lock.Options{RememberEvents: 1})
			for i := range 30 {
				lk := f.mustAcquire(l, event(string(rune('a'+i))+"-0123456789-0123456789-0123456789"))
				_ = lk.CompleteWith(lock.Completion{Result: make([]byte, 400<<10)})
			}
			for _, want := range []lock.Outcome{lock.OutcomeResultDropped, lock.OutcomeForgotten} {
				if !f.saw(want) {
					t.Errorf("nothing was %s", want)
				}
			}
		},
		"a lock that ended before its caller got it": func(t *testing.T, f *fixture) {
			f.faulty.Store = &slowAnswers{Store: f.faulty.Store, takes: 3 * time.Second} // the lease has ended by then
			if _, err := f.locker(lock.Options{Lease: lock.FixedLease(4 * time.Second)}).Acquire(t.Context(), resource); !errors.Is(err, lock.ErrLost) {
				t.Errorf("got %v, want a lease that is lost", err)
			}
		},
		"one of several": func(t *testing.T, f *fixture) {
			lk := held(f)
			_, _ = f.locker(lock.Options{}).AcquireAll(t.Context(), lock.Key{Name: "a"}, lock.Key{Name: "b"}, resource)
			_ = lk.Release()
		},
		"a slot": func(t *testing.T, f *fixture) {
			l := f.limited(5, lock.Options{})
			all := f.holdAll(l, 5)
			_, _ = l.Acquire(t.Context(), resource)
			for _, lk := range all {
				_ = lk.Release()
			}
		},
		"a transaction that is declined": func(t *testing.T, f *fixture) {
			lk := held(f)
			declined(t, f, lk)
			_ = lk.Release()
		},
		"a transaction that is declined, and a renewal that is interrupted": func(t *testing.T, f *fixture) {
			lk := held(f)
			declined(t, f, lk)
			f.faulty.Always(fault.Renew, fault.Throttle)
			time.Sleep(11 * time.Second)
			_ = lk.Release()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				run(t, f)
				sent := f.faulty.Requests(fault.Acquire) + f.faulty.Requests(fault.Renew) + f.faulty.Requests(fault.Release)
				if got := f.requests(); got != sent || sent == 0 {
					t.Errorf("observed %d requests of %d", got, sent)
				}
			})
		})
	}
}

func (f *fixture) saw(o lock.Outcome) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, seen := range f.observed {
		if seen.Outcome == o {
			return true
		}
	}
	return false
}

// requests returns the sum of the requests that were observed.
func (f *fixture) requests() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.observed {
		n += o.Requests
	}
	return n
}

// TestObservationsNameTheOperation shows which operation each outcome ends, and
// where.
func TestObservationsNameTheOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // the heartbeat observes on a goroutine of its own
		var seen []string
		l := expect.Value(lock.New(memstore.New(), &lock.Options{
			Namespace: "shop", Logger: discard, Lease: lock.Heartbeat(30 * time.Second), RememberEvents: 1,
			Observe: func(_ context.Context, o lock.Observation) {
				mu.Lock()
				defer mu.Unlock()
				if seen = append(seen, o.Op+": "+string(o.Outcome)); o.Namespace != "shop" || o.Store != "memory" {
					t.Errorf("%s is in %q at %q", o.Outcome, o.Namespace, o.Store)
				}
			},
		}))(t)
		acquire := func(key lock.Key) *lock.Lock {
			lk := expect.Value(l.Acquire(t.Context(), key))(t)
			return lk
		}
		lk := acquire(event("e1"))
		_, _ = l.Acquire(t.Context(), event("e2"))
		time.Sleep(11 * time.Second)
		_ = lk.CompleteWith(lock.Completion{Result: make([]byte, 400<<10)})
		_ = acquire(event("e2")).Release()
		_ = acquire(resource).Complete()
		want := []string{
			"acquire: acquired", "acquire: held", "renew: renewed", "complete: released", ": result_dropped", "acquire: acquired", "release: released", "acquire: acquired", "release: released",
		}
		if !slices.Equal(seen, want) {
			t.Errorf("observed %q\nwant %q", seen, want)
		}
	})
}

// TestFailures shows which outcomes are failures.
func TestFailures(t *testing.T) {
	t.Parallel()
	for _, o := range []lock.Outcome{
		lock.OutcomeLost, lock.OutcomeCompleteFailed, lock.OutcomeStoreFailed, lock.OutcomeRefused, lock.OutcomeMismatch,
		lock.OutcomeHeld, lock.OutcomeAlreadyCompleted, lock.OutcomeStale, lock.OutcomeRequeued,
	} {
		want := !slices.Contains([]lock.Outcome{lock.OutcomeHeld, lock.OutcomeAlreadyCompleted, lock.OutcomeStale, lock.OutcomeRequeued}, o)
		if got := (lock.Observation{Outcome: o, Err: lock.ErrLost}).Failed(); got != want {
			t.Errorf("%s failed: %v", o, got)
		}
	}
	if (lock.Observation{Outcome: lock.OutcomeTakenOver}).Failed() {
		t.Error("a takeover failed")
	}
}
