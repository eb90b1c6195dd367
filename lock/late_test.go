package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// TestLateClaimIsRefused shows that a copy of a claim that arrives after its
// acquisition has failed is refused, whatever the reason of the failure.
// Otherwise the name would be held for nobody.
func TestLateClaimIsRefused(t *testing.T) { // F2, F44
	gone := errors.New("client went away")
	for name, c := range map[string]struct {
		o         lock.Options
		faults    []fault.Fault // of the claims
		held      bool          // by another locker, throughout
		completed bool          // the event was completed before
		cancel    time.Duration // when the caller's context ends
		want      func(error) bool
	}{
		"held":              {faults: []fault.Fault{fault.HangThenApply}, held: true, want: isHeld},
		"held after a wait": {o: lock.Options{MaxWait: 5 * time.Second}, faults: []fault.Fault{fault.HangThenApply}, held: true, want: isHeld},
		"held, second round late": {
			o: lock.Options{MaxWait: 5 * time.Second}, faults: []fault.Fault{fault.None, fault.HangThenApply}, held: true, want: isHeld,
		},
		"wait cut short": {o: lock.Options{MaxWait: time.Minute}, faults: []fault.Fault{fault.HangThenApply}, held: true, cancel: 3 * time.Second, want: isHeld},
		"completed":      {faults: []fault.Fault{fault.HangThenApply}, completed: true, want: isCompleted},
		"denied":         {faults: []fault.Fault{fault.HangThenApply, fault.Deny}, want: isStoreError},
		"throttled":      {faults: []fault.Fault{fault.HangThenApply, fault.Throttle, fault.Throttle}, want: isStoreError},
		"never answered": {faults: []fault.Fault{fault.HangThenApply, fault.HangThenApply, fault.HangThenApply}, want: isStoreError},
		"cancelled":      {faults: []fault.Fault{fault.HangThenApply}, cancel: 500 * time.Millisecond, want: isStoreError},
		"applied, denied": {
			faults: []fault.Fault{fault.ApplyThenHang, fault.Deny}, want: isStoreError,
		},
		"applied, cancelled": {faults: []fault.Fault{fault.ApplyThenHang}, cancel: 500 * time.Millisecond, want: isStoreError},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				var other *lock.Lock
				if c.held {
					other = f.mustAcquire(f.locker(lock.Options{}), resource)
				}
				if c.completed {
					expect.Must(t, f.locker(lock.Options{}).Do(t.Context(), event("e1"), nothing))
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if c.cancel > 0 {
					time.AfterFunc(c.cancel, func() { cancel(gone) })
				}
				f.faulty.Plan(fault.Acquire, c.faults...)
				if _, err := f.locker(c.o).Acquire(ctx, event("e1")); !c.want(err) {
					t.Errorf("got %v", err)
				}
				if other != nil {
					f.faulty.Apply()
					if err := other.Release(); err != nil {
						t.Errorf("release by the holder: %v", err)
					}
				}
				if row := f.row(); row.Token != "" { // to acquire it would turn the late request away
					t.Errorf("held by %s before the late request", row.Token)
				}
				f.faulty.Apply()
				f.wantFree("after the late request")
			})
		})
	}
}

// TestCopiesOfEarlierRounds shows that late claims of earlier rounds of a wait
// do nothing once a later round was granted, neither while the lock is held nor
// afterwards.
func TestCopiesOfEarlierRounds(t *testing.T) { // F3, F44
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		other := f.mustAcquire(f.locker(lock.Options{}), resource)
		time.AfterFunc(6*time.Second, func() { _ = other.Release() })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		f.faulty.Plan(fault.Acquire, fault.HangThenApply, fault.None, fault.HangThenApply)
		o := untilDeadline // the same lease end in every round
		o.MaxWait = time.Minute
		lk := expect.Value(f.locker(o).Acquire(ctx, resource))(t)
		f.faulty.Apply()
		f.faulty.Apply()
		if _, err := f.locker(lock.Options{}).Acquire(t.Context(), resource); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("a contender got %v", err)
		}
		expect.Must(t, lk.Release())
		f.faulty.Apply()
		f.wantFree("after copies of two earlier rounds")
	})
}

// TestEarlierRoundAfterClockSetBack shows that a lock can be released if the
// clock was set back between two rounds and a late copy of the first round,
// which is dated later than the second, got the name.
func TestEarlierRoundAfterClockSetBack(t *testing.T) { // F3, F15, F44
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		other := f.mustAcquire(f.locker(lock.Options{}), resource)
		time.Sleep(time.Millisecond) // otherwise their stamps would be the same
		var process onClock
		refused := false
		l := expect.Value(lock.New(fault.Hooks{Store: f.faulty, OnAcquire: func(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
			row, ok, err := f.faulty.Acquire(ctx, c)
			if !ok && err == nil && !refused {
				refused = true
				_ = other.Release()
				f.faulty.Apply()
				process.clock.Step(-10 * time.Second)
			}
			return row, ok, err
		}}, &lock.Options{Lease: lock.FixedLease(time.Minute), MaxWait: time.Minute, Logger: discard}))(t)
		process = skewed(l, 0)
		f.faulty.Plan(fault.Acquire, fault.HangThenApply, fault.None, fault.HangThenApply)
		lk := f.mustAcquire(process, resource)
		expect.Must(t, lk.Release())
		f.faulty.Apply()
		f.wantFree("after a copy of the granted round")
	})
}

// TestGivingUpStaysWithinBudget shows that a claim without an answer is given
// up within the budget, even if the store is slow to take that, and that the
// name is free for others.
func TestGivingUpStaysWithinBudget(t *testing.T) { // F2, F11
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.faulty.Always(fault.Acquire, fault.ApplyThenHang)
		slow := &slowRelease{Store: f.faulty.Store, takes: 400 * time.Millisecond}
		f.faulty.Store = slow
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		_, err := f.locker(untilDeadline).Acquire(ctx, resource)
		if !isStoreError(err) || time.Since(start) > 2*time.Second {
			t.Errorf("got %v after %v, want a StoreError within the budget of 2s", err, time.Since(start))
		}
		slow.takes = 0
		f.wantFree("after a claim without an answer")
	})
}

// TestGivingUpIsRepeated shows that a claim without an answer is given up in
// spite of a connection that breaks.
func TestGivingUpIsRepeated(t *testing.T) { // F2
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.faulty.Plan(fault.Acquire, fault.HangThenApply, fault.Deny)
		f.faulty.Plan(fault.Release, fault.DropBefore)
		if _, err := f.locker(lock.Options{}).Acquire(t.Context(), resource); !isStoreError(err) {
			t.Errorf("got %v, want a StoreError", err)
		}
		f.faulty.Apply()
		f.wantFree("after the late request")
	})
}

// slowRelease waits before it applies a release whose context has not ended by
// then.
type slowRelease struct {
	driver.Store
	takes time.Duration
}

func (s *slowRelease) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return driver.Row{}, false, ctx.Err()
	}
	return s.Store.Settle(ctx, t)
}

// claimRecorder keeps a copy of every claim.
type claimRecorder struct {
	driver.Store
	claims []driver.Claim
}

func (s *claimRecorder) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	s.claims = append(s.claims, *c)
	return s.Store.Acquire(ctx, c)
}

// TestRetriesAreIdentical shows that a claim without an answer is sent again
// unchanged, and that a refused claim gets a higher stamp.
func TestRetriesAreIdentical(t *testing.T) { // F3
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		s := &claimRecorder{Store: f.faulty}
		l := expect.Value(lock.New(s, &lock.Options{MaxWait: 5 * time.Second, Logger: discard}))(t)
		other := f.mustAcquire(f.locker(lock.Options{}), resource)
		f.faulty.Plan(fault.Acquire, fault.Hang, fault.DropBefore, fault.None)
		if _, err := l.Acquire(t.Context(), resource); !isHeld(err) {
			t.Fatal(err)
		}
		if s.claims[0] != s.claims[1] || s.claims[1] != s.claims[2] {
			t.Errorf("attempts differ: %+v", s.claims[:3])
		}
		for i := 3; i < len(s.claims); i++ {
			if !s.claims[i].Stamp.After(s.claims[i-1].Stamp) || s.claims[i].Token != s.claims[0].Token {
				t.Errorf("round %d has %+v after %+v", i, s.claims[i], s.claims[i-1])
			}
		}
		_ = other.Release()

		s.claims = nil
		for range 100 { // at the same moment
			expect.Must(t, l.Do(t.Context(), resource, nothing))
		}
		for i := 1; i < len(s.claims); i++ {
			if !s.claims[i].Stamp.After(s.claims[i-1].Stamp) || s.claims[i].Token == s.claims[i-1].Token {
				t.Fatalf("acquisition %d has the stamp %v after %v", i, s.claims[i].Stamp, s.claims[i-1].Stamp)
			}
		}
		if len(s.claims) != 100 {
			t.Errorf("%d claims for 100 acquisitions, want one each: a stamp was too low", len(s.claims))
		}
	})
}

// TestLateClaimMovesTheEnd: a copy of the claim, dated later, came before a
// renewal that asks for less. The heartbeat takes over that end.
func TestLateClaimMovesTheEnd(t *testing.T) { // F3, F4
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		store := f.faulty.Store
		f.faulty.Store = fault.Hooks{Store: store, OnRenew: func(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
			later := *r
			later.Until = r.Until.Add(2 * time.Second)
			if _, ok, err := store.Renew(ctx, &later); !ok || err != nil {
				t.Error(ok, err)
			}
			return store.Renew(ctx, r)
		}}
		lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.Heartbeat(9 * time.Second)}), event("e1"))
		time.Sleep(4 * time.Second)
		if got, want := lk.Lease().Until, f.row().Until; !got.Equal(want) || lk.Context().Err() != nil {
			t.Errorf("the lease is said to end at %v, and ends at %v; the work: %v", got, want, context.Cause(lk.Context()))
		}
		expect.OK(t, lk.Complete())
	})
}

// TestHeartbeatAfterClockSetBack: the clock was set back while the lock was
// waited for, so that its lease ends later than a renewal would ask. A store
// that tells nothing of a refusal is not asked for less.
func TestHeartbeatAfterClockSetBack(t *testing.T) { // F14, F58
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		store := f.faulty.Store
		f.faulty.Store = fault.Hooks{Store: store, OnRenew: func(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
			row, ok, err := store.Renew(ctx, r)
			if !ok {
				row = driver.Row{Untold: true}
			}
			return row, ok, err
		}}
		first := f.mustAcquire(f.locker(lock.Options{Lease: lock.FixedLease(time.Hour)}), resource)
		process := skewed(f.locker(lock.Options{Lease: lock.Heartbeat(9 * time.Second), MaxWait: time.Minute}), 0)
		time.AfterFunc(5*time.Second, func() {
			process.clock.Step(-time.Minute)
			_ = first.Release()
		})
		lk := expect.Value(process.Acquire(t.Context(), event("e1")))(t)
		time.Sleep(2 * time.Minute)
		if lk.Context().Err() != nil {
			t.Errorf("the work has ended: %v", context.Cause(lk.Context()))
		}
		expect.OK(t, lk.Complete())
	})
}
