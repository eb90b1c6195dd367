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
)

// TestOrderOfStoredNames shows that names are acquired in the order in which
// they are stored, in which a hash may come before what it stands for.
func TestOrderOfStoredNames(t *testing.T) { // F34
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)})
		all := f.mustAcquireAll(l, lock.Key{Name: "\xff"}, lock.Key{Name: "z"}, lock.Key{Name: "a"})
		var names []string
		for _, lease := range lock.Leases(all.Context()) {
			names = append(names, lease.Key.Name)
		}
		if want := []string{"z", "\xff", "a"}; !slices.Equal(names, want) { // the innermost first; "\xff" is stored as "sha256:…"
			t.Errorf("leases of %q, want %q", names, want)
		}
		_ = all.Release()
	})
}

// TestResumeOutlastsLease shows that no work begins if the store takes longer
// to resume a lock than the lease lasts.
func TestResumeOutlastsLease(t *testing.T) { // F20
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.FixedLease(3 * time.Second)})
		h := f.handOver(f.mustAcquire(l, event("e1")), 3*time.Second)
		time.Sleep(time.Second) // so that the lease does not end a random moment after the ticket
		f.faulty.Plan(fault.Renew, fault.ApplyThenHang)
		if _, err := l.Resume(t.Context(), h); !isLost(err) {
			t.Errorf("Resume: %v, want a LostError", err)
		}
	})
}

// TestResumeUnderAnImplausibleDeadline shows that a step begins, with a
// heartbeat, under a deadline that lies far in the past.
func TestResumeUnderAnImplausibleDeadline(t *testing.T) { // F22
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(untilDeadline)
		h := f.handOver(f.mustAcquire(l, event("e1")), 5*time.Second)
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-2*time.Hour))
		defer cancel()
		lk := f.resume(l, ctx, h)
		time.Sleep(time.Minute)
		if err := lk.Context().Err(); err != nil {
			t.Errorf("the work has ended: %v", err)
		}
		expect.OK(t, lk.Complete())
	})
}

// TestLeaseOfAStep shows that a resumed lease lasts as an acquired one would:
// until Grace after the deadline, or as long as its heartbeat renews it.
func TestLeaseOfAStep(t *testing.T) { // F54
	for name, mode := range map[string]lock.LeaseMode{
		"until the deadline": lock.UntilDeadline(), "heartbeat": lock.Heartbeat(9 * time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(lock.Options{Lease: mode})
				first := f.mustAcquire(l, event("e1"))
				h := f.handOver(first, 5*time.Second)
				first.Leave()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				lk := f.resume(l, ctx, h)
				deadline, _ := ctx.Deadline()
				if after := lk.Lease().Until.Sub(deadline); mode == lock.UntilDeadline() && after != lock.DefaultGrace {
					t.Errorf("the lease ends %v after the deadline, want %v", after, lock.DefaultGrace)
				}
				time.Sleep(time.Minute)
				if err := lk.Context().Err(); err != nil {
					t.Errorf("the work has ended: %v", context.Cause(lk.Context()))
				}
				expect.OK(t, lk.Complete())
			})
		})
	}
}

// TestResumeWithinALock shows that a lock which is resumed under another one
// knows it.
func TestResumeWithinALock(t *testing.T) { // F33
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.FixedLease(time.Minute), MaxWait: time.Hour})
		h := f.handOver(f.mustAcquire(l, event("e1")), time.Hour)
		outer := f.mustAcquire(l, lock.Key{Name: "outer"})
		inner := f.resume(l, outer.Context(), h)
		if n := len(lock.Leases(inner.Context())); n != 2 {
			t.Errorf("%d leases, want 2", n)
		}
		if _, err := l.Acquire(inner.Context(), lock.Key{Name: "outer"}); !isConfig(err) {
			t.Errorf("the outer name again: %v", err)
		}
		_, _ = inner.Release(), outer.Release()
	})
}

// TestHandOverEndsWithItsContext shows that HandOver does not wait for a store
// when its caller has stopped waiting, and that the lock goes on.
func TestHandOverEndsWithItsContext(t *testing.T) { // F11
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)}), event("e1"))
		f.faulty.Plan(fault.Renew, fault.Hang)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		if _, err := lk.HandOver(ctx, time.Hour); !isStoreError(err) {
			t.Errorf("HandOver: %v", err)
		}
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		if err := lk.Complete(); err != nil || len(f.row().Memory.Completed) != 1 {
			t.Errorf("Complete: %v", err)
		}
	})
}

// TestLeaseOfFailedHandOver shows that a heartbeat which finds the lease longer
// than it knew says so.
func TestLeaseOfFailedHandOver(t *testing.T) { // F4
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.Heartbeat(9 * time.Second)}), event("e1"))
		f.faulty.Plan(fault.Renew, fault.ApplyThenHang, fault.Deny)
		if _, err := lk.HandOver(t.Context(), time.Hour); !isStoreError(err) {
			t.Fatalf("HandOver: %v", err)
		}
		time.Sleep(4 * time.Second)
		if got, want := lk.Lease().Until, f.row().Until; !got.Equal(want) {
			t.Errorf("the lease is said to end at %v, and ends at %v", got, want)
		}
		_ = lk.Release()
	})
}

// TestSecondHandOverCounts shows that work under a heartbeat may go on until
// the end of the lease that was handed over last.
func TestSecondHandOverCounts(t *testing.T) { // F15
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.Heartbeat(10 * time.Second)}), resource)
		f.handOver(lk, 20*time.Second)
		h := f.handOver(lk, time.Minute)
		<-lk.Context().Done()
		if left := time.Until(h.Until); left != lock.DefaultGrace {
			t.Errorf("the work ended %v before the lease", left)
		}
		_ = lk.Release()
	})
}

// TestHandOverDuringARenewal shows that the late answer to a heartbeat does not
// shorten the lease that was handed over meanwhile.
func TestHandOverDuringARenewal(t *testing.T) { // F3
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		store := f.faulty.Store
		f.faulty.Store = fault.Hooks{Store: store, OnRenew: func(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
			row, ok, err := store.Renew(ctx, r)
			if time.Until(r.Until) < time.Minute { // a heartbeat
				time.Sleep(500 * time.Millisecond)
			}
			return row, ok, err
		}}
		lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.Heartbeat(9 * time.Second)}), event("e1"))
		time.Sleep(3200 * time.Millisecond) // the first renewal is sent after 3 s
		h := f.handOver(lk, time.Hour)
		if !h.Until.Equal(f.row().Until) {
			t.Errorf("the ticket says %v, and the row %v", h.Until, f.row().Until)
		}
		_ = lk.Release()
	})
}

// TestReleaseAfterRefusedTransaction shows that a transaction which is refused
// because of a HandOver does not end the lock.
func TestReleaseAfterRefusedTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)}), event("e1"))
		f.handOver(lk, time.Hour)
		if err := transact(t, f, lk, f.faulty.Settle); !isConfig(err) {
			t.Errorf("the transaction: %v", err)
		}
		expect.OK(t, lk.Release())
		f.wantFree("after Release")
	})
}

// TestUnansweredTransactionOfAMutex shows that the failure of a transaction is
// reported as one of a completion, whatever the key has.
func TestUnansweredTransactionOfAMutex(t *testing.T) { // F7
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)}), resource)
		f.outcomes()
		if err := transact(t, f, lk, fails(errors.New("lost"))); !isStoreError(err) {
			t.Errorf("error %v", err)
		}
		f.wantOutcomes(lock.OutcomeCompleteFailed)
	})
}

// TestPanicBeforeLeave shows that Leave passes on the panic of an observer, as
// Complete and Release do.
func TestPanicBeforeLeave(t *testing.T) { // F48
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := expect.Value(lock.New(f.faulty, &lock.Options{Lease: lock.Heartbeat(9 * time.Second), Logger: discard, Observe: func(_ context.Context, o lock.Observation) {
			if o.Outcome == lock.OutcomeRenewed {
				panic("boom")
			}
		}}))(t)
		lk := f.mustAcquire(l, event("e1"))
		time.Sleep(4 * time.Second)
		defer func() {
			if p := recover(); p != "boom" {
				t.Errorf("recovered %v, want the observer's panic", p)
			}
			if err := lk.Release(); err != nil {
				t.Errorf("Release blocks or fails: %v", err)
			}
		}()
		lk.Leave()
	})
}

// TestSetOfMutexesEndsSoon shows that the end of locks without events takes no
// longer than a release may take.
func TestSetOfMutexesEndsSoon(t *testing.T) { // F11
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		all := f.mustAcquireAll(f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)}), resource)
		f.faulty.Always(fault.Release, fault.Hang)
		began := time.Now()
		if err := all.Complete(); !isStoreError(err) {
			t.Errorf("Complete: %v", err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v, want at most 2 s", took)
		}
	})
}

// TestPayloadWithoutEvent shows that a payload means nothing without an Event.
func TestPayloadWithoutEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)})
		f.mustAcquire(l, lock.Key{Name: "resource", Payload: "a"})
		if _, err := l.Acquire(t.Context(), lock.Key{Name: "resource", Payload: "b"}); !isHeld(err) {
			t.Errorf("another payload: %v, want held", err)
		}
	})
}

// TestManyEndsAtOnce ends a lock from several goroutines while renewals fail.
func TestManyEndsAtOnce(t *testing.T) { // F17
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.Heartbeat(4 * time.Second)}), event("e1"))
			f.faulty.Always(fault.Renew, fault.Deny)
			var wg sync.WaitGroup
			for i, end := range []func(){
				func() {
					_ = transact(t, f, lk, fails(&driver.Error{Lasting: true, Answered: true, Unapplied: true, Err: errors.New("declined")}))
				},
				func() { _ = transact(t, f, lk, f.faulty.Settle) },
				func() { _ = lk.Release() }, func() { lk.Leave() }, func() { _ = lk.Complete() },
			} {
				wg.Go(func() {
					time.Sleep(time.Duration(995+i) * time.Millisecond) // the first renewal is sent after 1 s
					end()
				})
			}
			wg.Wait()
			if lk.Context().Err() == nil {
				t.Error("the context goes on")
			}
		})
	}
}
