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

// free fails the test unless somebody else gets the name at once.
func (r *rig) free(when string) {
	r.t.Helper()
	r.store.Always(locktest.Acquire, locktest.None)
	r.store.Always(locktest.Release, locktest.None)
	lk, err := r.locker(lock.Options{}).Acquire(r.t.Context(), resource)
	if err != nil {
		r.t.Errorf("%s: %v, although nobody holds the name", when, err)
		return
	}
	_ = lk.Release()
}

// TestLateClaimIsRefused: however an acquisition ends without the lock, what is
// still under way of it does not get the name later, for nobody.
func TestLateClaimIsRefused(t *testing.T) { // F2, F44
	gone := errors.New("client went away")
	for name, c := range map[string]struct {
		o      lock.Options
		faults []locktest.Fault // of the requests to acquire
		held   bool             // by somebody else, throughout
		done   bool             // the event is completed
		cancel time.Duration    // of the caller's context
		want   func(error) bool
	}{
		"held":              {faults: []locktest.Fault{locktest.HangThenApply}, held: true, want: isHeld},
		"held after a wait": {o: lock.Options{MaxWait: 5 * time.Second}, faults: []locktest.Fault{locktest.HangThenApply}, held: true, want: isHeld},
		"held, late in the second round": {
			o: lock.Options{MaxWait: 5 * time.Second}, faults: []locktest.Fault{locktest.None, locktest.HangThenApply}, held: true, want: isHeld,
		},
		"wait cut short": {o: lock.Options{MaxWait: time.Minute}, faults: []locktest.Fault{locktest.HangThenApply}, held: true, cancel: 3 * time.Second, want: isHeld},
		"done":           {faults: []locktest.Fault{locktest.HangThenApply}, done: true, want: func(err error) bool { return errors.Is(err, lock.ErrCompleted) }},
		"denied":         {faults: []locktest.Fault{locktest.HangThenApply, locktest.Deny}, want: isStoreError},
		"throttled":      {faults: []locktest.Fault{locktest.HangThenApply, locktest.Throttle, locktest.Throttle}, want: isStoreError},
		"never answered": {faults: []locktest.Fault{locktest.HangThenApply, locktest.HangThenApply, locktest.HangThenApply}, want: isStoreError},
		"cancelled":      {faults: []locktest.Fault{locktest.HangThenApply}, cancel: 500 * time.Millisecond, want: isStoreError},
		"applied, denied": {
			faults: []locktest.Fault{locktest.ApplyThenHang, locktest.Deny}, want: isStoreError,
		},
		"applied, cancelled": {faults: []locktest.Fault{locktest.ApplyThenHang}, cancel: 500 * time.Millisecond, want: isStoreError},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				var other *lock.Lock
				if c.held {
					other = r.mustAcquire(r.locker(lock.Options{}), resource)
				}
				if c.done {
					if err := r.locker(lock.Options{}).Do(t.Context(), event("e1"), nothing); err != nil {
						t.Fatal(err)
					}
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if c.cancel > 0 {
					time.AfterFunc(c.cancel, func() { cancel(gone) })
				}
				r.store.Plan(locktest.Acquire, c.faults...)
				if _, err := r.locker(c.o).Acquire(ctx, event("e1")); !c.want(err) {
					t.Errorf("got %v", err)
				}
				if other != nil {
					r.store.ApplyLate()
					if err := other.Release(); err != nil {
						t.Errorf("the holder was disturbed: %v", err)
					}
				}
				r.free("before the late request")
				r.store.ApplyLate()
				r.free("after the late request")
			})
		})
	}
}

func isHeld(err error) bool       { return errors.Is(err, lock.ErrHeld) }
func isStoreError(err error) bool { return errors.As(err, new(*lock.StoreError)) }

// TestCopiesOfEarlierRounds: what is under way of earlier rounds of a wait does nothing
// once a later round was granted, neither while the lock is held nor afterwards.
func TestCopiesOfEarlierRounds(t *testing.T) { // F3, F44
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		other := r.mustAcquire(r.locker(lock.Options{}), resource)
		time.AfterFunc(6*time.Second, func() { _ = other.Release() })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r.store.Plan(locktest.Acquire, locktest.HangThenApply, locktest.None, locktest.HangThenApply)
		o := atDeadline // the same lease end in every round
		o.MaxWait = time.Minute
		lk, err := r.locker(o).Acquire(ctx, resource)
		if err != nil {
			t.Fatal(err)
		}
		r.store.ApplyLate()
		r.store.ApplyLate()
		if _, err := r.locker(lock.Options{}).Acquire(t.Context(), resource); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("a contender got %v", err)
		}
		if err := lk.Release(); err != nil {
			t.Fatal(err)
		}
		r.store.ApplyLate()
		r.free("after copies of two earlier rounds")
	})
}

// refusals calls back after the first claim that is refused.
type refusals struct {
	driver.Store
	first func()
}

func (s *refusals) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	row, ok, err := s.Store.Acquire(ctx, c)
	if first := s.first; !ok && err == nil && first != nil {
		s.first = nil
		first()
	}
	return row, ok, err
}

// TestEarlierRoundAfterClockSetBack: between two rounds the clock is set back,
// and a copy of the first one gets the name, dated later than what follows.
func TestEarlierRoundAfterClockSetBack(t *testing.T) { // F3, F15, F44
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		other := r.mustAcquire(r.locker(lock.Options{}), resource)
		time.Sleep(time.Millisecond) // or their stamps were the same
		back := time.Duration(0)
		l, err := lock.New(&refusals{r.store, func() {
			_ = other.Release()
			r.store.ApplyLate()
			back = 10 * time.Second
		}}, &lock.Options{Lease: lock.FixedLease(time.Minute), MaxWait: time.Minute, Logger: discard})
		if err != nil {
			t.Fatal(err)
		}
		l.SetClock(func() time.Time { return time.Now().Add(-back) })
		r.store.Plan(locktest.Acquire, locktest.HangThenApply, locktest.None, locktest.HangThenApply)
		lk := r.mustAcquire(l, resource)
		if err := lk.Release(); err != nil {
			t.Fatal(err)
		}
		r.store.ApplyLate()
		r.free("after a copy of the granted round")
	})
}

// TestGivingUpStaysWithinBudget: a claim without any answer is given up within the budget,
// also where the store takes its time for it, and the name is free for others.
func TestGivingUpStaysWithinBudget(t *testing.T) { // F2, F11
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.store.Always(locktest.Acquire, locktest.ApplyThenHang)
		slow := &slowRelease{Store: r.store.Store, takes: 400 * time.Millisecond}
		r.store.Store = slow
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		_, err := r.locker(atDeadline).Acquire(ctx, resource)
		if !isStoreError(err) || time.Since(start) > 2*time.Second {
			t.Errorf("got %v after %v, want a StoreError within the budget of 2s", err, time.Since(start))
		}
		slow.takes = 0
		r.free("after a claim without an answer")
	})
}

// slowRelease applies releases late, if they are still wanted then.
type slowRelease struct {
	driver.Store
	takes time.Duration
}

func (s *slowRelease) Release(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return driver.Row{}, false, ctx.Err()
	}
	return s.Store.Release(ctx, t)
}

// claims notes what was sent to acquire.
type claims struct {
	driver.Store
	sent []driver.Claim
}

func (c *claims) Acquire(ctx context.Context, claim *driver.Claim) (driver.Row, bool, error) {
	c.sent = append(c.sent, *claim)
	return c.Store.Acquire(ctx, claim)
}

// TestRetriesAreIdentical: a claim without an answer is repeated unchanged, and a refused
// one gets a higher stamp.
func TestRetriesAreIdentical(t *testing.T) { // F3
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		c := &claims{Store: r.store}
		l, err := lock.New(c, &lock.Options{MaxWait: 5 * time.Second, Logger: discard})
		if err != nil {
			t.Fatal(err)
		}
		other := r.mustAcquire(r.locker(lock.Options{}), resource)
		r.store.Plan(locktest.Acquire, locktest.Hang, locktest.DropBefore, locktest.None)
		if _, err := l.Acquire(t.Context(), resource); !isHeld(err) {
			t.Fatal(err)
		}
		if c.sent[0] != c.sent[1] || c.sent[1] != c.sent[2] {
			t.Errorf("attempts differ: %+v", c.sent[:3])
		}
		for i := 3; i < len(c.sent); i++ {
			if !c.sent[i].Stamp.After(c.sent[i-1].Stamp) || c.sent[i].Token != c.sent[0].Token {
				t.Errorf("round %d has %+v after %+v", i, c.sent[i], c.sent[i-1])
			}
		}
		_ = other.Release()

		c.sent = nil
		for range 100 { // at one instant
			if err := l.Do(t.Context(), resource, nothing); err != nil {
				t.Fatal(err)
			}
		}
		for i := 1; i < len(c.sent); i++ {
			if !c.sent[i].Stamp.After(c.sent[i-1].Stamp) || c.sent[i].Token == c.sent[i-1].Token {
				t.Fatalf("acquisition %d has the stamp %v after %v", i, c.sent[i].Stamp, c.sent[i-1].Stamp)
			}
		}
		if len(c.sent) != 100 {
			t.Errorf("%d claims for 100 acquisitions: their stamps were too low", len(c.sent))
		}
	})
}

func isDone(err error) bool { return errors.Is(err, lock.ErrCompleted) }
