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

func TestWaitUntilReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{MaxWait: time.Minute})
		first := f.mustAcquire(l, resource)
		time.AfterFunc(5*time.Second, func() { _ = first.Release() })
		start := time.Now()
		second := f.mustAcquire(l, resource)
		if d := time.Since(start); d < 5*time.Second || d > 8*time.Second {
			t.Errorf("acquired after %v, want soon after 5s", d)
		}
		f.wantOutcomes(lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeAcquired)
		_ = second.Release()
	})
}

// TestWaitForDeadHolder shows that a waiter has the lock within 50 ms of lease
// end, with at most three requests.
func TestWaitForDeadHolder(t *testing.T) { // F19, F38
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		dead := f.mustAcquire(f.locker(lock.Options{Lease: lock.FixedLease(2 * time.Second), Grace: 500 * time.Millisecond}), resource)
		end := dead.Lease().Until
		time.Sleep(500 * time.Millisecond)
		before := f.faulty.Requests(fault.Acquire)
		lk := f.mustAcquire(f.locker(lock.Options{MaxWait: time.Minute}), resource)
		if after := time.Since(end); after <= 0 || after > 50*time.Millisecond {
			t.Errorf("acquired %v after lease end", after)
		}
		if n := f.faulty.Requests(fault.Acquire) - before; n > 3 {
			t.Errorf("%d requests", n)
		}
		_ = lk.Release()
	})
}

// TestWaitForTheNextHolder shows that a waiter which finds another holder than
// before expects that one to end as soon as one that has just begun.
func TestWaitForTheNextHolder(t *testing.T) { // F19, F38
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		dead := f.mustAcquire(f.locker(lock.Options{Lease: lock.FixedLease(10 * time.Second)}), resource)
		end := dead.Lease().Until
		time.Sleep(time.Until(end) - 1900*time.Millisecond) // less than the pause for one that is held so long
		time.AfterFunc(time.Until(end)+500*time.Microsecond, func() {
			next := f.mustAcquire(f.locker(lock.Options{}), resource)
			time.AfterFunc(30*time.Millisecond, func() { _ = next.Release() })
		})
		lk := f.mustAcquire(f.locker(lock.Options{MaxWait: time.Minute}), resource)
		if after := time.Since(end); after < 30*time.Millisecond || after > 100*time.Millisecond {
			t.Errorf("acquired after %v, want it soon after 30ms", after)
		}
		_ = lk.Release()
	})
}

// TestWaitWithoutFences shows that a waiter which no fence tells of another
// owner expects a holder that has just begun to end soon.
func TestWaitWithoutFences(t *testing.T) { // F38
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.faulty.Store = fault.Hooks{Store: f.faulty.Store, Each: func(ctx context.Context, r fault.Request) (driver.Row, bool, error) {
			row, ok, err := r.Send(ctx)
			if !ok {
				row.Fence = 0
			}
			return row, ok, err
		}}
		holder := f.mustAcquire(f.locker(lock.Options{}), resource)
		time.AfterFunc(30*time.Millisecond, func() { _ = holder.Release() })
		start := time.Now()
		lk := f.mustAcquire(f.locker(lock.Options{MaxWait: time.Minute}), resource)
		if d := time.Since(start); d > 100*time.Millisecond {
			t.Errorf("acquired after %v, want it soon after 30ms", d)
		}
		_ = lk.Release()
	})
}

func TestWaitTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		holder := f.mustAcquire(f.locker(lock.Options{}), resource)
		start := time.Now()
		_, err := f.locker(lock.Options{MaxWait: 3 * time.Second}).Acquire(t.Context(), resource)
		var held *lock.HeldError
		if !errors.As(err, &held) || held.Cause != nil || time.Since(start) != 3*time.Second {
			t.Errorf("got %v after %v, want a HeldError without cause after 3s", err, time.Since(start))
		}
		f.wantOutcomes(lock.OutcomeAcquired, lock.OutcomeHeld)
		_ = holder.Release()
	})
}

func TestWaitIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		holder := f.mustAcquire(f.locker(lock.Options{}), resource)
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("client went away")
		time.AfterFunc(time.Second, func() { cancel(cause) })
		_, err := f.locker(lock.Options{MaxWait: time.Minute}).Acquire(ctx, resource)
		if !errors.Is(err, lock.ErrHeld) || !errors.Is(err, cause) {
			t.Errorf("got %v, want held and the context's cause", err)
		}
		if _, ok := err.(*lock.HeldError); !ok {
			t.Errorf("the outermost type is %T, which is what AWS reports", err)
		}
		_ = holder.Release()
	})
}

// TestWaitUnderALostLease shows that a wait which ends because the lease around
// it is lost counts as refused by the holder.
func TestWaitUnderALostLease(t *testing.T) { // F20
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		holder := f.mustAcquire(f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)}), keyB)
		outer := f.mustAcquire(f.locker(lock.Options{Lease: lock.Heartbeat(6 * time.Second)}), keyA)
		f.outcomes()
		f.faulty.Always(fault.Renew, fault.Deny)
		if _, err := f.locker(lock.Options{MaxWait: time.Minute}).Acquire(outer.Context(), keyB); !isHeld(err) || !isLost(err) {
			t.Errorf("got %v, want held and the context's cause", err)
		}
		f.wantOutcomes(lock.OutcomeStoreFailed, lock.OutcomeLost, lock.OutcomeHeld)
		_, _ = outer.Release(), holder.Release()
	})
}

func TestWaitLeavesTimeToRun(t *testing.T) { // F12, F33
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		holder := f.mustAcquire(f.locker(lock.Options{}), resource)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := f.locker(lock.Options{Lease: lock.UntilDeadline(), MaxWait: time.Hour}).Acquire(ctx, resource)
		if !errors.Is(err, lock.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want held, and the deadline that cut the wait short", err)
		}
		deadline, _ := ctx.Deadline()
		// A second each for the requests and the reserve, and the shortest run.
		if left := time.Until(deadline); left < 2100*time.Millisecond {
			t.Errorf("only %v of 10s were left, want 2.1s", left)
		}
		_ = holder.Release()
	})
}

// noDetail is a store that does not return the row that refused.
type noDetail struct{ driver.Store }

func (s noDetail) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	row, ok, err := s.Store.Acquire(ctx, c)
	if !ok {
		row = driver.Row{Untold: true}
	}
	return row, ok, err
}

func TestStoreWithoutDetail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.faulty.Store = noDetail{f.faulty.Store}
		l := f.locker(lock.Options{})
		first := f.mustAcquire(l, resource)
		_, err := l.Acquire(t.Context(), resource)
		var held *lock.HeldError
		if !errors.As(err, &held) || held.Holder != "" || held.Error() == "" {
			t.Errorf("got %v, want held by somebody unknown", err)
		}
		time.AfterFunc(time.Second, func() { _ = first.Release() })
		second := f.mustAcquire(f.locker(lock.Options{MaxWait: 10 * time.Second}), resource)
		_ = second.Release()
	})
}

func (s noDetail) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	row, ok, err := s.Store.Settle(ctx, t)
	if !ok {
		row = driver.Row{Untold: true}
	}
	return row, ok, err
}

// TestLostAnswerWithoutDetail shows that a completion without an answer counts
// as applied if the store refuses the next attempt and does not say why.
func TestLostAnswerWithoutDetail(t *testing.T) { // F6
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.faulty.Store = noDetail{f.faulty.Store}
		lk := f.mustAcquire(f.locker(lock.Options{}), event("e1"))
		f.faulty.Plan(fault.Release, fault.ApplyThenDrop)
		if err := lk.Complete(); err != nil {
			t.Errorf("got %v, although it was applied", err)
		}
	})
}

// TestRefusalThatJudgeWouldGrant shows that a claim is sent again immediately
// if it is refused with a row that would grant it, as by a store that read an
// earlier state.
func TestRefusalThatJudgeWouldGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		store, claims := f.faulty.Store, 0
		f.faulty.Store = fault.Hooks{Store: store, OnAcquire: func(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
			if claims++; claims == 1 {
				return driver.Row{Stamp: c.Stamp.Add(-time.Second)}, false, nil
			}
			return store.Acquire(ctx, c)
		}}
		start := time.Now()
		lk := f.mustAcquire(f.locker(lock.Options{}), resource)
		if d := time.Since(start); claims != 2 || d > 25*time.Millisecond {
			t.Errorf("%d claims in %v, want 2 within 25ms", claims, d)
		}
		_ = lk.Release()
	})
}

// TestWaiterWithOldStamp shows that a waiter asks again immediately if the name
// is free and only its stamp is too old, however long its pauses were before.
func TestWaiterWithOldStamp(t *testing.T) { // F14
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		var asked []time.Time
		store := f.faulty.Store
		f.faulty.Store = fault.Hooks{Store: store, OnAcquire: func(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
			asked = append(asked, time.Now())
			switch n := len(asked); {
			case n <= 4: // held
				return driver.Row{Token: "other", Stamp: c.Now.Add(-time.Millisecond), Until: c.Now.Add(time.Minute)}, false, nil
			case n == 5: // acquired and released since the claim was dated
				return driver.Row{Stamp: c.Stamp.Add(time.Millisecond)}, false, nil
			}
			return store.Acquire(ctx, c)
		}}
		expect.Must(t, f.locker(lock.Options{Lease: lock.FixedLease(time.Minute), MaxWait: time.Minute}).Do(t.Context(), resource, nothing))
		if gap := asked[5].Sub(asked[4]); gap > 25*time.Millisecond {
			t.Errorf("the name was free, and the waiter slept %v", gap)
		}
	})
}

// TestStampIsRaised shows that a free name whose stamp is above the claim's is
// taken without a wait, also if others raise the stamp meanwhile, and that no
// two claims of one acquisition have the same stamp.
func TestStampIsRaised(t *testing.T) { // F3, F14
	for name, rise := range map[string]time.Duration{"others raise it too": time.Millisecond, "nobody else raises it": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				var stamps []time.Time
				store := f.faulty.Store
				f.faulty.Store = fault.Hooks{Store: store, OnAcquire: func(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
					stamps = append(stamps, c.Stamp)
					if n := len(stamps); n <= 3 {
						return driver.Row{Stamp: stamps[0].Add(time.Minute + time.Duration(n)*rise)}, false, nil
					}
					return store.Acquire(ctx, c)
				}}
				lk := f.mustAcquire(f.locker(lock.Options{}), resource)
				for i := 1; i < len(stamps); i++ {
					if !stamps[i].After(stamps[i-1]) {
						t.Errorf("claim %d has the stamp %v, which is not above %v", i+1, stamps[i], stamps[i-1])
					}
				}
				_ = lk.Release()
			})
		})
	}
}

// TestRefusedAgainAndAgain shows that a claim that is refused although nobody
// holds the name is sent at most four times in one round.
func TestRefusedAgainAndAgain(t *testing.T) { // F14
	for name, c := range map[string]struct{ stamp time.Duration }{
		"the stamp is too old":       {time.Minute},
		"the row would have granted": {-time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				claims := 0
				f.faulty.Store = fault.Hooks{Store: f.faulty.Store, OnAcquire: func(_ context.Context, claim *driver.Claim) (driver.Row, bool, error) {
					claims++
					return driver.Row{Stamp: claim.Stamp.Add(c.stamp)}, false, nil // nobody holds it
				}}
				if _, err := f.locker(lock.Options{}).Acquire(t.Context(), resource); !isHeld(err) || claims != 4 {
					t.Errorf("got %v after %d claims, want a HeldError after 4", err, claims)
				}
			})
		})
	}
}

// TestMutexHasNoDuplicates shows that a key without an Event is held by another
// event, never by a duplicate.
func TestMutexHasNoDuplicates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{})
		holder := f.mustAcquire(l, resource)
		var held *lock.HeldError
		if _, err := l.Acquire(t.Context(), resource); !errors.As(err, &held) || held.Duplicate {
			t.Errorf("got %+v, want a HeldError that is not a duplicate", err)
		}
		_ = holder.Release()
	})
}
