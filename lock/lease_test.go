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

func TestHeartbeatRenewsLease(t *testing.T) { // F16, F22
	for name, c := range map[string]struct {
		mode  lock.LeaseMode
		lease time.Duration
	}{
		"asked for":                        {lock.Heartbeat(10 * time.Second), 10 * time.Second},
		"no deadline":                      {lock.LeaseMode{}, lock.DefaultLease},
		"deadline that cannot be believed": {lock.UntilDeadline(), lock.DefaultLease},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				l := r.locker(lock.Options{Lease: c.mode})
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				if name == "no deadline" {
					ctx = t.Context()
				}
				err := l.Do(ctx, resource, func(ctx context.Context) error {
					for range 100 {
						time.Sleep(7 * time.Second)
						if _, err := l.Acquire(t.Context(), resource); !errors.Is(err, lock.ErrHeld) {
							t.Fatalf("a contender got %v", err)
						}
						if lease, _ := lock.FromContext(ctx); !lease.Until.After(time.Now()) {
							t.Fatal("the lease in the context has ended")
						}
					}
					return ctx.Err()
				})
				if err != nil {
					t.Error(err)
				}
				if got, want := r.store.Requests(locktest.Renew), int(700*time.Second/(c.lease/3)); got < want-1 || got > want {
					t.Errorf("%d renewals, want %d", got, want)
				}
			})
		})
	}
}

func TestHeartbeatOutlivesContext(t *testing.T) { // F16
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		l := r.locker(lock.Options{Lease: lock.Heartbeat(3 * time.Second)})
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

func TestFailingRenewalsStopTheWork(t *testing.T) { // F20
	for name, fault := range map[string]locktest.Fault{
		"denied": locktest.Deny, "hung": locktest.Hang, "dropped": locktest.DropBefore, "throttled": locktest.Throttle,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				l := r.locker(lock.Options{Lease: lock.Heartbeat(12 * time.Second)})
				lk := r.mustAcquire(l, resource)
				end := lk.Lease().Until
				r.store.Always(locktest.Renew, fault)
				<-lk.Context().Done()
				if cause := context.Cause(lk.Context()); !errors.Is(cause, lock.ErrLost) {
					t.Errorf("cause %v, want lost", cause)
				}
				if left := time.Until(end); left < 2*time.Second || left > 3*time.Second {
					t.Errorf("the work was stopped %v before lease end, want the grace of 2s", left)
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
				r := newRig(t)
				lk := r.mustAcquire(r.locker(lock.Options{Lease: lock.Heartbeat(9 * time.Second)}), event("e1"))
				row, _, err := r.store.Store.Acquire(t.Context(), &driver.Claim{Name: "/resource", Now: time.Now()})
				if err != nil {
					t.Fatal(err)
				}
				if _, ok, err := r.store.Store.Release(t.Context(), &driver.Settlement{Name: "/resource", Token: row.Token}); !ok || err != nil {
					t.Fatal(ok, err)
				}
				var other *lock.Lock
				if taken {
					other = r.mustAcquire(r.locker(lock.Options{Lease: lock.FixedLease(time.Hour)}), event("e2"))
				}
				time.Sleep(4 * time.Second)
				synctest.Wait()
				if cause := context.Cause(lk.Context()); !errors.Is(cause, lock.ErrLost) {
					t.Errorf("cause %v, want lost at the first renewal", cause)
				}
				if err := lk.Complete(nil); !errors.Is(err, lock.ErrLost) {
					t.Errorf("completion: %v, want lost", err)
				}
				if taken {
					if err := other.Complete(nil); err != nil {
						t.Errorf("the new owner: %v", err)
					}
				}
			})
		})
	}
}

func TestLostAnswerOfRenewal(t *testing.T) { // F4
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		lk := r.mustAcquire(r.locker(lock.Options{Lease: lock.Heartbeat(9 * time.Second)}), resource)
		r.kinds()
		r.store.Plan(locktest.Renew, locktest.ApplyThenDrop, locktest.None, locktest.DropBefore, locktest.None)
		time.Sleep(7 * time.Second)
		synctest.Wait()
		r.want(lock.OutcomeRenewed, lock.OutcomeRenewed)
		if n := r.store.Requests(locktest.Renew); n != 4 {
			t.Errorf("%d renewal requests, want one repeated each time", n)
		}
		if err := lk.Release(); err != nil {
			t.Error(err)
		}
	})
}

func TestFixedLeaseStopsTheWork(t *testing.T) { // F20
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		l := r.locker(lock.Options{Lease: lock.FixedLease(20 * time.Second)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		lk, err := l.Acquire(ctx, resource)
		if err != nil {
			t.Fatal(err)
		}
		if d, _ := lk.Context().Deadline(); time.Until(d) != 18*time.Second {
			t.Errorf("the work may run for %v, want the lease less the grace", time.Until(d))
		}
		time.Sleep(18 * time.Second)
		synctest.Wait()
		if cause := context.Cause(lk.Context()); !errors.Is(cause, lock.ErrLost) {
			t.Errorf("cause %v, want lost", cause)
		}
		if n := r.store.Requests(locktest.Renew); n != 0 {
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
		r := newRig(t)
		l := r.locker(lock.Options{Lease: lock.FixedLease(3 * time.Second)})
		r.store.Plan(locktest.Acquire, locktest.ApplyThenHang)
		_, err := l.Acquire(t.Context(), resource)
		if !errors.Is(err, lock.ErrLost) {
			t.Errorf("got %v, want lost: the confirmed lease is over", err)
		}
		if err := l.Do(t.Context(), resource, nothing); err != nil {
			t.Errorf("it was not freed: %v", err)
		}
	})
}

func TestWorkContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type k struct{}
		parent, cancel := context.WithTimeout(context.WithValue(t.Context(), k{}, "v"), time.Minute)
		defer cancel()
		r := newRig(t)
		lk, err := r.locker(atDeadline).Acquire(parent, resource)
		if err != nil {
			t.Fatal(err)
		}
		ctx := lk.Context()
		child, stop := context.WithCancel(ctx)
		defer stop()
		if ctx.Value(k{}) != "v" || ctx.Err() != nil || child.Value(k{}) != "v" {
			t.Error("values or state of the parent are lost")
		}
		if err := lk.Release(); err != nil {
			t.Fatal(err)
		}
		<-child.Done()
		if ctx.Err() != context.Canceled {
			t.Errorf("after the release: %v, want cancelled", ctx.Err())
		}

		lk, err = r.locker(atDeadline).Acquire(parent, resource)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if err := lk.Context().Err(); err != context.DeadlineExceeded {
			t.Errorf("at the reserve: %v, although nobody had asked for Done", err)
		}
		_ = lk.Release()
	})
}
