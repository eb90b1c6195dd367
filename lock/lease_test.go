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

func TestHeartbeatRenewsLease(t *testing.T) { // F16, F22
	for name, c := range map[string]struct {
		mode  lock.LeaseMode
		lease time.Duration
	}{
		"heartbeat":            {lock.Heartbeat(10 * time.Second), 10 * time.Second},
		"no deadline":          {lock.LeaseMode{}, lock.DefaultLease},
		"implausible deadline": {lock.UntilDeadline(), lock.DefaultLease},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(lock.Options{Lease: c.mode})
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				if name == "no deadline" {
					ctx = t.Context()
				}
				err := l.Do(ctx, resource, func(ctx context.Context) error {
					for range 100 {
						time.Sleep(7 * time.Second)
						synctest.Wait() // for a renewal of the same instant
						if _, err := l.Acquire(t.Context(), resource); !errors.Is(err, lock.ErrHeld) {
							t.Fatalf("a contender got %v", err)
						}
						lease, _ := lock.FromContext(ctx)
						if !lease.Until.After(time.Now()) {
							t.Fatal("the lease in the context has ended")
						}
						if row := f.row(); !row.Until.Equal(lease.Until) || row.DeleteAfter.Sub(row.Until) != 366*24*time.Hour {
							t.Fatalf("the row is held until %v and kept until %v, and the holder believes in %v", row.Until, row.DeleteAfter, lease.Until)
						}
					}
					return ctx.Err()
				})
				if err != nil {
					t.Error(err)
				}
				for _, o := range f.observations() {
					if o.Failed() {
						t.Errorf("observed %s: %v", o.Outcome, o.Err)
					}
				}
				if got, want := f.faulty.Requests(fault.Renew), int(700*time.Second/(c.lease/3)); got < want-1 || got > want {
					t.Errorf("%d renewals, want %d", got, want)
				}
			})
		})
	}
}

func TestHeartbeatOutlivesContext(t *testing.T) { // F16
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.Heartbeat(3 * time.Second)})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := l.Do(ctx, resource, func(ctx context.Context) error {
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, lock.ErrLost) {
				t.Errorf("cause %v, want the deadline", cause)
			}
			time.Sleep(time.Minute)
			if _, err := l.Acquire(t.Context(), resource); !errors.Is(err, lock.ErrHeld) {
				t.Errorf("while the work ignores its context: %v", err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestFailingRenewalsStopTheWork shows that work whose lease cannot be renewed
// is stopped Grace before the lease ends.
func TestFailingRenewalsStopTheWork(t *testing.T) { // F20
	for name, meets := range map[string]fault.Fault{
		"deny": fault.Deny, "hang": fault.Hang, "drop before": fault.DropBefore, "throttle": fault.Throttle,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(lock.Options{Lease: lock.Heartbeat(12 * time.Second)})
				lk := f.mustAcquire(l, resource)
				end := lk.Lease().Until
				f.faulty.Always(fault.Renew, meets)
				<-lk.Context().Done()
				if cause := context.Cause(lk.Context()); !errors.Is(cause, lock.ErrLost) {
					t.Errorf("cause %v, want lost", cause)
				}
				if left := time.Until(end); left < 2*time.Second || left > 3*time.Second {
					t.Errorf("the work was stopped %v before lease end, want the Grace of 2s", left)
				}
				if err := lk.Release(); err != nil {
					t.Errorf("release of a lease that nobody took: %v", err)
				}
			})
		})
	}
}

// TestHeartbeatNoticesLoss shows that the first renewal after somebody released
// the row by hand ends the work, even if the row of the next owner ends later.
func TestHeartbeatNoticesLoss(t *testing.T) { // F20, F21, F23
	for name, taken := range map[string]bool{"released by hand": false, "released by hand, then taken": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.Heartbeat(9 * time.Second)}), event("e1"))
				f.releaseByHand()
				var other *lock.Lock
				if taken {
					other = f.mustAcquire(f.locker(lock.Options{Lease: lock.FixedLease(time.Hour)}), event("e2"))
				}
				f.outcomes()
				time.Sleep(4 * time.Second)
				synctest.Wait()
				f.wantOutcomes(lock.OutcomeLost)
				if cause := context.Cause(lk.Context()); !errors.Is(cause, lock.ErrLost) {
					t.Errorf("cause %v, want lost at the first renewal", cause)
				}
				if err := lk.Complete(); !errors.Is(err, lock.ErrLost) {
					t.Errorf("completion: %v, want lost", err)
				}
				if taken {
					if err := other.Complete(); err != nil {
						t.Errorf("the new owner: %v", err)
					}
				}
			})
		})
	}
}

// TestHeartbeatHeedsTheStoresClock shows that a renewal which the store refuses
// although the row is still the holder's ends the work: its lease is over by
// the store's own clock.
func TestHeartbeatHeedsTheStoresClock(t *testing.T) { // F14, F20
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.faulty.Store = fault.Hooks{Store: f.faulty.Store, OnRenew: func(context.Context, *driver.Renewal) (driver.Row, bool, error) {
			return f.row(), false, nil
		}}
		lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.Heartbeat(9 * time.Second)}), event("e1"))
		f.outcomes()
		time.Sleep(4 * time.Second)
		f.wantOutcomes(lock.OutcomeLost)
		if cause := context.Cause(lk.Context()); !errors.Is(cause, lock.ErrLost) {
			t.Errorf("cause %v, want lost at the first renewal", cause)
		}
		_ = lk.Release()
	})
}

func TestLostAnswerOfRenewal(t *testing.T) { // F4
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.Heartbeat(9 * time.Second)}), resource)
		f.outcomes()
		f.faulty.Plan(fault.Renew, fault.ApplyThenDrop, fault.None, fault.DropBefore, fault.None)
		time.Sleep(7 * time.Second)
		synctest.Wait()
		f.wantOutcomes(lock.OutcomeRenewed, lock.OutcomeRenewed)
		if n := f.faulty.Requests(fault.Renew); n != 4 {
			t.Errorf("%d renewal requests, want two for each of two renewals", n)
		}
		expect.OK(t, lk.Release())
	})
}

func TestFixedLeaseStopsTheWork(t *testing.T) { // F20
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.FixedLease(20 * time.Second)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		lk, err := l.Acquire(ctx, resource)
		if err != nil {
			t.Fatal(err)
		}
		if d, _ := lk.Context().Deadline(); time.Until(d) != 18*time.Second {
			t.Errorf("the work may run for %v, want the lease less Grace", time.Until(d))
		}
		time.Sleep(18 * time.Second)
		synctest.Wait()
		if cause := context.Cause(lk.Context()); !errors.Is(cause, lock.ErrLost) {
			t.Errorf("cause %v, want lost", cause)
		}
		if n := f.faulty.Requests(fault.Renew); n != 0 {
			t.Errorf("%d renewals of a fixed lease", n)
		}
		_ = lk.Release()

		short, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		lk, err = l.Acquire(short, resource)
		if err != nil {
			t.Fatal(err)
		}
		<-lk.Context().Done()
		if cause := context.Cause(lk.Context()); cause != context.DeadlineExceeded {
			t.Errorf("cause %v, want the deadline, which comes first", cause)
		}
		_ = lk.Release()
	})
}

func TestAcquireOutlastsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.FixedLease(3 * time.Second)})
		f.faulty.Plan(fault.Acquire, fault.ApplyThenHang)
		_, err := l.Acquire(t.Context(), resource)
		if !errors.Is(err, lock.ErrLost) {
			t.Errorf("got %v, want lost: the lease ended before the answer", err)
		}
		if err := l.Do(t.Context(), resource, nothing); err != nil {
			t.Errorf("the name was not released: %v", err)
		}
	})
}

func TestWorkContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type k struct{}
		parent, cancel := context.WithTimeout(context.WithValue(t.Context(), k{}, "v"), time.Minute)
		defer cancel()
		f := newFixture(t)
		lk, err := f.locker(untilDeadline).Acquire(parent, resource)
		if err != nil {
			t.Fatal(err)
		}
		ctx := lk.Context()
		child, stop := context.WithCancel(ctx)
		defer stop()
		if ctx.Value(k{}) != "v" || ctx.Err() != nil || child.Value(k{}) != "v" {
			t.Error("the context lacks the values or the state of its parent")
		}
		expect.Must(t, lk.Release())
		<-child.Done()
		if ctx.Err() != context.Canceled {
			t.Errorf("after the release: %v, want cancelled", ctx.Err())
		}

		lk, err = f.locker(untilDeadline).Acquire(parent, resource)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if err := lk.Context().Err(); err != context.DeadlineExceeded {
			t.Errorf("at the reserve: %v, want the deadline, although nobody called Done", err)
		}
		_ = lk.Release()
	})
}

// TestReserve shows that Reserve says how long before the deadline the work's
// context ends, and how much time must be left to begin.
func TestReserve(t *testing.T) { // F12, F16
	for name, o := range map[string]lock.Options{"until the deadline": untilDeadline, "heartbeat": {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				o.Reserve = 10 * time.Second
				f := newFixture(t)
				lk := expect.Value(f.locker(o).Acquire(ctx, resource))(t)
				if end, _ := lk.Context().Deadline(); time.Until(end) != 50*time.Second {
					t.Errorf("the work has %v, want 50s", time.Until(end))
				}
				expect.Must(t, lk.Release())
				time.Sleep(50 * time.Second)
				var late *lock.DeadlineError
				if _, err := f.locker(o).Acquire(ctx, resource); !errors.As(err, &late) || late.Need != 10100*time.Millisecond {
					t.Errorf("got %v, want a DeadlineError that needs 10.1s", err)
				}
			})
		})
	}
}

// TestLeaseThatTheStoreShortens shows that the lease of the row counts, if it
// ends before the one that was asked for.
func TestLeaseThatTheStoreShortens(t *testing.T) { // F1
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		store := f.faulty.Store
		f.faulty.Store = fault.Hooks{Store: store, OnAcquire: func(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
			claim := *c
			claim.Until = c.Until.Add(-time.Second)
			return store.Acquire(ctx, &claim)
		}}
		lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.FixedLease(10 * time.Second)}), resource)
		if got := time.Until(lk.Lease().Until); got != 9*time.Second {
			t.Errorf("the lease ends in %v, want 9s", got)
		}
		if d, _ := lk.Context().Deadline(); time.Until(d) != 7*time.Second {
			t.Errorf("the work may run for %v, want 9s less Grace", time.Until(d))
		}
		_ = lk.Release()
	})
}
