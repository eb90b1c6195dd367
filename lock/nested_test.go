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
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestNestedLocksEndBeforeTheDeadline shows that nested locks end before the
// deadline of the outermost one, even if their work returns only shortly before
// it and the store does not answer. The deadline of an inner lock has passed by
// then, but not that of the process.
func TestNestedLocksEndBeforeTheDeadline(t *testing.T) { // F11, F12, F16
	for name, end := range map[string]func(*lock.Lock) error{
		"release": (*lock.Lock).Release, "complete": func(lk *lock.Lock) error { return lk.Complete() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plan := &fault.Script{}
				l := expect.Value(lock.New(fault.NewStore(memstore.New(), plan, &fault.Kept{}), &lock.Options{Lease: lock.UntilDeadline(), Logger: discard}))(t)
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				deadline, _ := ctx.Deadline()
				var nested []*lock.Lock
				for _, name := range []string{"outer", "middle", "inner"} {
					lk := expect.Value(l.Acquire(ctx, lock.Key{Name: name, Event: "e1"}))(t)
					ctx, nested = lk.Context(), append([]*lock.Lock{lk}, nested...)
				}
				plan.Always(fault.Release, fault.Hang)
				time.Sleep(time.Until(deadline) - 160*time.Millisecond)
				for i, lk := range nested {
					before := plan.Requests(fault.Release)
					if err := end(lk); !isStoreError(err) || plan.Requests(fault.Release) == before {
						t.Errorf("lock %d: %v, want a StoreError after a request", i, err)
					}
				}
				if left := time.Until(deadline); left < 20*time.Millisecond {
					t.Errorf("ended %v before the deadline, want 20ms for the answer", left)
				}
			})
		})
	}
}

// TestNestedLeaseLastsUntilTheKill shows that the lease of a nested lock lasts
// until the platform kills the process, like that of the lock around it. The
// context of the work around it ends earlier, but work may ignore it.
func TestNestedLeaseLastsUntilTheKill(t *testing.T) { // F16
	synctest.Test(t, func(t *testing.T) {
		l := expect.Value(lock.New(memstore.New(), &lock.Options{Lease: lock.UntilDeadline(), Reserve: 3 * time.Second, Logger: discard}))(t)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		deadline, _ := ctx.Deadline()
		for _, name := range []string{"outer", "middle", "inner"} {
			lk := expect.Value(l.Acquire(ctx, lock.Key{Name: name}))(t)
			defer func() { _ = lk.Release() }()
			if end := lk.Lease().Until.Sub(deadline); end != lock.DefaultGrace {
				t.Errorf("the lease of %s ends %v after the process is killed, want %v", name, end, lock.DefaultGrace)
			}
			ctx = lk.Context()
		}
	})
}

// TestNestedLeaseNeedsANearDeadline shows that the lease of a nested lock lasts
// until its own deadline if that of the lock around it is not the platform's,
// or is an earlier one.
func TestNestedLeaseNeedsANearDeadline(t *testing.T) { // F16
	for _, c := range []struct{ outer, inner time.Duration }{{2 * time.Hour, time.Minute}, {time.Minute, 5 * time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			l := f.locker(untilDeadline)
			ctx, cancel := context.WithTimeout(t.Context(), c.outer)
			defer cancel()
			outer := expect.Value(l.Acquire(ctx, keyA))(t)
			defer func() { _ = outer.Release() }()
			ctx, cancel = context.WithTimeout(context.WithoutCancel(outer.Context()), c.inner)
			defer cancel()
			inner := expect.Value(l.Acquire(ctx, keyB))(t)
			defer func() { _ = inner.Release() }()
			if lasts := time.Until(inner.Lease().Until); lasts != c.inner+lock.DefaultGrace {
				t.Errorf("the lease lasts %v, want %v", lasts, c.inner+lock.DefaultGrace)
			}
			if end, _ := inner.Context().Deadline(); time.Until(end) != c.inner-time.Second {
				t.Errorf("the work has %v, want %v", time.Until(end), c.inner-time.Second)
			}
		})
	}
}

// TestNestedWorkWithinItsContext shows that work under a heartbeat which ends
// with its context is not reported as work that has outlived it, however much
// earlier its deadline is than that of the lock around it.
func TestNestedWorkWithinItsContext(t *testing.T) { // F16
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		outer := expect.Value(f.locker(lock.Options{Lease: lock.UntilDeadline(), Reserve: 15 * time.Second}).Acquire(ctx, keyA))(t)
		inner := expect.Value(f.locker(lock.Options{Lease: lock.Heartbeat(30 * time.Second)}).Acquire(outer.Context(), keyB))(t)
		<-inner.Context().Done() // after 44 s
		expect.OK(t, inner.Release())
		expect.OK(t, outer.Release())
		renewed := 0
		for _, o := range f.observations() {
			if o.Outcome == lock.OutcomeRenewed {
				renewed++
			}
			if o.Failed() {
				t.Errorf("observed %s: %v", o.Outcome, o.Err)
			}
		}
		if renewed != 4 {
			t.Errorf("%d renewals, want 4", renewed)
		}
	})
}

// TestLostErrorNamesTheOuterLock shows whose fixed lease it was that ended the
// work, also if the clock was set between the two locks.
func TestLostErrorNamesTheOuterLock(t *testing.T) { // F14, F20
	for _, set := range []time.Duration{0, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			process := skewed(f.locker(lock.Options{Lease: lock.FixedLease(6 * time.Second)}), 0)
			outer := expect.Value(process.Acquire(t.Context(), keyA))(t)
			defer func() { _ = outer.Release() }()
			process.clock.Step(set)
			inner := expect.Value(f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)}).Acquire(context.WithoutCancel(outer.Context()), keyB))(t)
			defer func() { _ = inner.Release() }()
			<-inner.Context().Done()
			var lost *lock.LostError
			if cause := context.Cause(inner.Context()); !errors.As(cause, &lost) || lost.Key != keyA {
				t.Errorf("clock set by %v: the work ended with %v, want the lease of %s lost", set, cause, keyA.Digest())
			}
		})
	}
}

// TestLockAfterTheOuterOne acquires a lock with a context that outlives the
// lock around it. A lease that has ended in order does not end the work under
// the next one, and does not keep it from the name.
func TestLockAfterTheOuterOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.FixedLease(6 * time.Second)})
		outer := f.mustAcquire(l, lock.Key{Name: "a"})
		ctx := context.WithoutCancel(outer.Context())
		expect.Must(t, outer.Release())
		time.Sleep(time.Minute)
		inner := expect.Value(l.AcquireOneOf(ctx, "a", 2))(t)
		if err := inner.Context().Err(); err != nil {
			t.Errorf("the work has ended: %v", err)
		}
		expect.OK(t, inner.Release())
	})
}
