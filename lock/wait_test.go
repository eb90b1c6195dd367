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
	"github.com/lambdalock/lambdalock/stores/memstore"
)

func TestWaitUntilReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		l := r.locker(lock.Options{MaxWait: time.Minute})
		first := r.mustAcquire(l, resource)
		time.AfterFunc(5*time.Second, func() { _ = first.Release() })
		start := time.Now()
		second := r.mustAcquire(l, resource)
		if d := time.Since(start); d < 5*time.Second || d > 8*time.Second {
			t.Errorf("had it after %v, want soon after 5s", d)
		}
		r.want(lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeWaited, lock.OutcomeAcquired)
		_ = second.Release()
	})
}

// TestWaitForDeadHolder: a waiter that was there has the lock within 50 ms of the
// lease's end, with at most three requests; one that comes later with one.
func TestWaitForDeadHolder(t *testing.T) { // F19, F38
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		dead := r.mustAcquire(r.locker(lock.Options{Lease: lock.FixedLease(2 * time.Second), Grace: 500 * time.Millisecond}), resource)
		end := dead.Lease().Until
		time.Sleep(500 * time.Millisecond)
		before := r.store.Requests(locktest.Acquire)
		lk := r.mustAcquire(r.locker(lock.Options{MaxWait: time.Minute}), resource)
		if after := time.Since(end); after <= 0 || after > 50*time.Millisecond {
			t.Errorf("had it %v after lease end", after)
		}
		if n := r.store.Requests(locktest.Acquire) - before; n > 3 {
			t.Errorf("%d requests", n)
		}
		_ = lk.Release()
	})
}

func TestWaitTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		holder := r.mustAcquire(r.locker(lock.Options{}), resource)
		start := time.Now()
		_, err := r.locker(lock.Options{MaxWait: 3 * time.Second}).Acquire(t.Context(), resource)
		var held *lock.HeldError
		if !errors.As(err, &held) || held.Cause != nil || time.Since(start) != 3*time.Second {
			t.Errorf("got %v after %v, want a HeldError without cause after 3s", err, time.Since(start))
		}
		r.want(lock.OutcomeAcquired, lock.OutcomeWaited, lock.OutcomeHeld)
		_ = holder.Release()
	})
}

func TestWaitIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		holder := r.mustAcquire(r.locker(lock.Options{}), resource)
		ctx, cancel := context.WithCancelCause(t.Context())
		because := errors.New("client went away")
		time.AfterFunc(time.Second, func() { cancel(because) })
		_, err := r.locker(lock.Options{MaxWait: time.Minute}).Acquire(ctx, resource)
		if !errors.Is(err, lock.ErrHeld) || !errors.Is(err, because) {
			t.Errorf("got %v, want held and the context's cause", err)
		}
		if _, ok := err.(*lock.HeldError); !ok {
			t.Errorf("outermost type is %T: AWS reports it", err)
		}
		_ = holder.Release()
	})
}

func TestWaitLeavesTimeToRun(t *testing.T) { // F12, F33
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		holder := r.mustAcquire(r.locker(lock.Options{}), resource)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := r.locker(lock.Options{Lease: lock.UntilDeadline(), MaxWait: time.Hour}).Acquire(ctx, resource)
		if !errors.Is(err, lock.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want held, and the deadline that cut the wait short", err)
		}
		deadline, _ := ctx.Deadline()
		if left := time.Until(deadline); left < 2*time.Second {
			t.Errorf("only %v of 10s were left", left)
		}
		_ = holder.Release()
	})
}

// silent is a store that does not tell why it refuses.
type silent struct{ driver.Store }

func (s silent) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	row, ok, err := s.Store.Acquire(ctx, c)
	if !ok {
		row = driver.Row{}
	}
	return row, ok, err
}

func TestStoreWithoutDetail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.store.Store = silent{r.store.Store}
		l := r.locker(lock.Options{})
		first := r.mustAcquire(l, resource)
		_, err := l.Acquire(t.Context(), resource)
		var held *lock.HeldError
		if !errors.As(err, &held) || held.Holder != "" || held.Error() == "" {
			t.Errorf("got %v, want held by somebody unknown", err)
		}
		time.AfterFunc(time.Second, func() { _ = first.Release() })
		second := r.mustAcquire(r.locker(lock.Options{MaxWait: 10 * time.Second}), resource)
		_ = second.Release()
	})
}

// scripted refuses the first four claims as held, the fifth because the name was
// acquired and released since the claim was dated, and passes on the others.
type scripted struct {
	*memstore.Store
	asked []time.Time
}

func (s *scripted) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	s.asked = append(s.asked, time.Now())
	switch n := len(s.asked); {
	case n <= 4:
		return driver.Row{Token: "other", Stamp: c.Now.Add(-time.Millisecond), Until: c.Now.Add(time.Minute)}, false, nil
	case n == 5:
		return driver.Row{Stamp: c.Stamp.Add(time.Millisecond)}, false, nil
	}
	return s.Store.Acquire(ctx, c)
}

// TestWaiterWithOldStamp: a waiter that finds the name free, and only its stamp too old,
// asks again at once, however long it has waited before.
func TestWaiterWithOldStamp(t *testing.T) { // F14
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{Store: memstore.New()}
		r := newRig(t)
		r.store.Store = s
		if err := r.locker(lock.Options{Lease: lock.FixedLease(time.Minute), MaxWait: time.Minute}).Do(t.Context(), resource, nothing); err != nil {
			t.Fatal(err)
		}
		if gap := s.asked[5].Sub(s.asked[4]); gap > 25*time.Millisecond {
			t.Errorf("the name was free, and the waiter slept %v", gap)
		}
	})
}
