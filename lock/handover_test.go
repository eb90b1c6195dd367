package lock_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
)

// passOn returns the ticket as it arrives in another function.
func passOn(t *testing.T, h lock.Ticket) lock.Ticket {
	t.Helper()
	b := expect.Value(json.Marshal(h))(t)
	var arrived lock.Ticket
	expect.Must(t, json.Unmarshal(b, &arrived))
	if arrived != h {
		t.Errorf("%+v became %+v in the JSON %s", h, arrived, b)
	}
	return arrived
}

func (f *fixture) handOver(lk *lock.Lock, lease time.Duration) lock.Ticket {
	f.t.Helper()
	h := expect.Value(lk.HandOver(lk.Context(), lease))(f.t)
	return passOn(f.t, h)
}

func (f *fixture) resume(l locker, ctx context.Context, h lock.Ticket) *lock.Lock {
	f.t.Helper()
	lk := expect.Value(l.Resume(ctx, h))(f.t)
	return lk
}

// TestHandOver passes a lock through three invocations with different lease
// modes and namespaces, while a fourth waits for it.
func TestHandOver(t *testing.T) { // F54
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		invocation := func() context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			t.Cleanup(cancel)
			return ctx
		}
		key := lock.Key{Name: "résumé", Event: "e1", Order: "7", Payload: "10 EUR"}
		first := f.locker(lock.Options{Lease: lock.UntilDeadline(), Namespace: "first"})
		lk := expect.Value(first.Acquire(invocation(), key))(t)
		fence := lk.Lease().Fence
		h := f.handOver(lk, 10*time.Minute)
		if err := lk.CompleteWith([]byte("result")); err != nil {
			t.Errorf("Complete after HandOver: %v", err)
		}
		if err := lk.Release(); err != nil {
			t.Errorf("Release after Complete: %v", err)
		}
		if lk.Context().Err() == nil {
			t.Error("the first step's context goes on")
		}
		f.wantOutcomes(lock.OutcomeAcquired, lock.OutcomeHandedOver)

		waiting := make(chan error)
		go func() {
			waiter := f.locker(lock.Options{Lease: lock.FixedLease(time.Minute), Namespace: "first", MaxWait: time.Hour})
			other, err := waiter.Acquire(t.Context(), lock.Key{Name: "résumé", Event: "e2", Order: "8"})
			if err == nil {
				err = other.Complete()
			}
			waiting <- err
		}()

		time.Sleep(5 * time.Minute)
		second := f.locker(lock.Options{Lease: lock.Heartbeat(30 * time.Second)})
		lk = f.resume(second, invocation(), h)
		if lease, ok := lock.FromContext(lk.Context()); !ok || lease.Fence != fence || lease.Key.Name != "résumé" || lease.Until.Before(h.Until) {
			t.Errorf("the second step's lease is %+v, %v; want fence %d and at least until %v", lease, ok, fence, h.Until)
		}
		time.Sleep(50 * time.Second) // with renewals, none of which may shorten the lease
		h = f.handOver(lk, 10*time.Minute)
		expect.OK(t, lk.Complete())

		time.Sleep(9 * time.Minute)
		lk = f.resume(f.locker(lock.Options{Lease: lock.UntilDeadline()}), invocation(), h)
		before := f.faulty.Requests(fault.Release)
		expect.Must(t, lk.CompleteWith([]byte("result")))
		if n := f.faulty.Requests(fault.Release) - before; n != 1 {
			t.Errorf("%d requests to complete, want 1", n)
		}
		if err := <-waiting; err != nil {
			t.Errorf("the waiter: %v", err)
		}
		var completed *lock.CompletedError
		if _, err := first.Acquire(t.Context(), key); !errors.As(err, &completed) || completed.Stale {
			t.Errorf("a duplicate: %v", err)
		}
		key.Payload = "20 EUR"
		if _, err := first.Acquire(t.Context(), key); !isMismatch(err) {
			t.Errorf("a duplicate with another payload: %v", err)
		}
		if _, err := second.Resume(t.Context(), h); !errors.As(err, &completed) || string(completed.Result) != "result" {
			t.Errorf("the ticket after completion: %v", err)
		}
	})
}

// TestHandOverRequests counts them: one to hand over, one to resume.
func TestHandOverRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)})
		lk := f.mustAcquire(l, resource)
		h := f.handOver(lk, time.Hour)
		if n := f.faulty.Requests(fault.Renew); n != 1 {
			t.Errorf("%d requests to hand over, want 1", n)
		}
		expect.Must(t, lk.Complete())
		lk = f.resume(l, t.Context(), h)
		if n := f.faulty.Requests(fault.Renew); n != 2 {
			t.Errorf("%d requests to resume, want 1", n-1)
		}
		expect.Must(t, lk.Release())
		if n := f.faulty.Requests(fault.Acquire) + f.faulty.Requests(fault.Release); n != 2 {
			t.Errorf("%d other requests, want 2", n)
		}
		if _, err := l.Resume(t.Context(), h); !errors.Is(err, lock.ErrLost) {
			t.Errorf("the ticket after the release: %v", err)
		}
		f.wantFree("after the release")
	})
}

// TestWorthlessTickets shows what a ticket cannot do.
func TestWorthlessTickets(t *testing.T) { // F54
	isConfig := func(err error) bool { return errors.As(err, new(*lock.ConfigError)) }
	isLost := func(err error) bool { return errors.Is(err, lock.ErrLost) }
	for name, c := range map[string]struct {
		after func(f *fixture, l *lock.Locker, lk *lock.Lock)
		edit  func(*lock.Ticket)
		want  func(error) bool
	}{
		"lock released after all": {after: func(_ *fixture, _ *lock.Locker, lk *lock.Lock) { _ = lk.Release() }, want: isLost},
		"lease ended":             {after: func(*fixture, *lock.Locker, *lock.Lock) { time.Sleep(time.Hour) }, want: nil}, // nobody asked for the name
		"taken over": {after: func(f *fixture, l *lock.Locker, _ *lock.Lock) {
			time.Sleep(time.Hour)
			f.mustAcquire(l, event("e2"))
		}, want: isLost},
		"completed by a duplicate": {after: func(f *fixture, l *lock.Locker, _ *lock.Lock) {
			time.Sleep(time.Hour)
			_ = f.mustAcquire(l, event("e1")).Complete()
		}, want: isCompleted},
		"another name":   {edit: func(h *lock.Ticket) { h.Name = "/other" }, want: isLost},
		"another token":  {edit: func(h *lock.Ticket) { h.Token = "guessed" }, want: isConfig},
		"another event":  {edit: func(h *lock.Ticket) { h.Event = "e2" }, want: isConfig},
		"no event":       {edit: func(h *lock.Ticket) { h.Event = "" }, want: isConfig},
		"empty":          {edit: func(h *lock.Ticket) { *h = lock.Ticket{} }, want: isConfig},
		"without a name": {edit: func(h *lock.Ticket) { h.Name = "" }, want: isConfig},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)})
				expect.Must(t, f.mustAcquire(l, lock.Key{Name: "other"}).Release())
				lk := f.mustAcquire(l, event("e1"))
				h := f.handOver(lk, 10*time.Minute)
				if c.after != nil {
					c.after(f, l, lk)
				}
				if c.edit != nil {
					c.edit(&h)
				}
				f.outcomes()
				resumed, err := l.Resume(t.Context(), h)
				if c.want == nil {
					if err != nil {
						t.Fatal(err)
					}
					expect.OK(t, resumed.Complete())
					return
				}
				if !c.want(err) {
					t.Errorf("Resume: %v", err)
				}
				if got := f.outcomes(); len(got) != 1 || slices.Contains(got, lock.OutcomeResumed) {
					t.Errorf("observed %q", got)
				}
			})
		})
	}
}

// TestHandOverThatNobodyResumes shows that the name can be taken over at the
// end of the lease that was handed over, and not before.
func TestHandOverThatNobodyResumes(t *testing.T) { // F19
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.Heartbeat(10 * time.Second)})
		lk := f.mustAcquire(l, event("e1"))
		f.handOver(lk, 10*time.Minute)
		expect.Must(t, lk.Complete())
		time.Sleep(10 * time.Minute)
		var held *lock.HeldError
		if _, err := l.Acquire(t.Context(), event("e1")); !errors.As(err, &held) || !held.Duplicate {
			t.Errorf("a duplicate at lease end: %v", err)
		}
		time.Sleep(time.Millisecond)
		f.outcomes()
		expect.OK(t, f.mustAcquire(l, event("e1")).Complete())
		f.wantOutcomes(lock.OutcomeTakenOver, lock.OutcomeReleased)
	})
}

// TestHandOverFails shows that the lock goes on as before, and is released.
func TestHandOverFails(t *testing.T) {
	for name, c := range map[string]struct {
		lease   time.Duration
		prepare func(f *fixture, lk *lock.Lock)
		want    func(error) bool
	}{
		"too short":       {lease: time.Second, want: func(err error) bool { return errors.As(err, new(*lock.ConfigError)) }},
		"too long":        {lease: 400 * 24 * time.Hour, want: func(err error) bool { return errors.As(err, new(*lock.ConfigError)) }},
		"denied":          {lease: time.Hour, prepare: func(f *fixture, _ *lock.Lock) { f.faulty.Plan(fault.Renew, fault.Deny) }, want: isStoreError},
		"released before": {lease: time.Hour, prepare: func(_ *fixture, lk *lock.Lock) { _ = lk.Release() }, want: func(err error) bool { return errors.Is(err, lock.ErrLost) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)}), resource)
				if c.prepare != nil {
					c.prepare(f, lk)
				}
				if _, err := lk.HandOver(t.Context(), c.lease); !c.want(err) {
					t.Errorf("HandOver: %v", err)
				}
				_ = lk.Complete()
				f.wantFree("after Complete")
			})
		})
	}
	if _, err := lock.HandOver(t.Context(), time.Hour); !errors.As(err, new(*lock.ConfigError)) {
		t.Errorf("without a lock: %v", err)
	}
}

// TestHandOverWithLostAnswers shows that both steps repeat a request whose
// answer was lost, or whose first copy came first.
func TestHandOverWithLostAnswers(t *testing.T) { // F4
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)})
		lk := f.mustAcquire(l, event("e1"))
		f.faulty.Plan(fault.Renew, fault.ApplyThenDrop)
		h := expect.Value(lock.HandOver(lk.Context(), time.Hour))(t)
		f.faulty.Plan(fault.Renew, fault.ApplyThenDrop)
		resumed := f.resume(l, t.Context(), passOn(t, h))
		again := f.resume(l, t.Context(), h) // the retry of a step that crashed
		if resumed.Lease().Fence != again.Lease().Fence {
			t.Error("the retry has another fence")
		}
		expect.OK(t, again.Complete())
		if err := resumed.Complete(); !errors.Is(err, lock.ErrLost) {
			t.Errorf("the crashed step: %v", err)
		}
	})
}

// TestResumeNearTheDeadline shows that a step without time for any work does
// not begin.
func TestResumeNearTheDeadline(t *testing.T) { // F12
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(untilDeadline)
		lk := f.mustAcquire(l, resource)
		h := f.handOver(lk, time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := l.Resume(ctx, h); !errors.As(err, new(*lock.DeadlineError)) {
			t.Errorf("Resume: %v", err)
		}
		_ = lk.Release()
		if len(lock.Leases(t.Context())) != 0 {
			t.Error("leases outside any lock")
		}
	})
}

// TestHandOverOfAnOrder shows that the order travels with the ticket.
func TestHandOverOfAnOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)})
		ordered := func(order string) lock.Key { return lock.Key{Name: "resource", Order: order} }
		h := f.handOver(f.mustAcquire(l, ordered("7")), time.Hour)
		expect.Must(t, f.resume(l, t.Context(), h).Complete())
		if _, err := l.Acquire(t.Context(), ordered("7")); !isCompleted(err) {
			t.Errorf("a duplicate: %v", err)
		}
		if _, err := l.Resume(t.Context(), h); !isCompleted(err) {
			t.Errorf("the ticket: %v", err)
		}
		h = f.handOver(f.mustAcquire(l, ordered("8")), time.Hour)
		time.Sleep(2 * time.Hour)
		expect.Must(t, f.mustAcquire(l, ordered("9")).Complete())
		var lost *lock.LostError
		if _, err := l.Resume(t.Context(), h); !errors.As(err, &lost) || !lost.Until.Equal(h.Until) {
			t.Errorf("the ticket after a later event was completed: %v, want it lost since %v", err, h.Until)
		}
	})
}

// TestHandOverNeverShortensTheLease shows that neither step does, and that
// nobody renews it in between.
func TestHandOverNeverShortensTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.FixedLease(time.Hour)}), resource)
		if h := f.handOver(lk, time.Minute); !h.Until.Equal(lk.Lease().Until) || time.Until(h.Until) < 59*time.Minute {
			t.Errorf("the lease until %v became one until %v", lk.Lease().Until, h.Until)
		}
		_ = lk.Release()

		lk = f.mustAcquire(f.locker(lock.Options{Lease: lock.Heartbeat(10 * time.Second)}), resource)
		h := f.handOver(lk, 5*time.Minute)
		before := f.faulty.Requests(fault.Renew)
		time.Sleep(time.Minute)
		if n := f.faulty.Requests(fault.Renew) - before; n != 0 {
			t.Errorf("%d renewals after the lock was handed over", n)
		}
		longer := f.resume(f.locker(lock.Options{Lease: lock.FixedLease(time.Hour)}), t.Context(), h)
		retry := f.resume(f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)}), t.Context(), h)
		if !sameEnd(retry.Lease().Until, longer.Lease().Until) {
			t.Errorf("the retry has a lease until %v, want %v", retry.Lease().Until, longer.Lease().Until)
		}
		expect.OK(t, retry.Release())
	})
}

// TestHandOverWhenTheObserverPanics shows that the ticket still counts.
func TestHandOverWhenTheObserverPanics(t *testing.T) { // F48
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.Heartbeat(time.Minute)}), event("e1"))
		h := f.handOver(lk, time.Hour)
		expect.Must(t, lk.Complete())
		panics := expect.Value(lock.New(f.faulty, &lock.Options{Logger: discard, Observe: func(context.Context, lock.Observation) { panic("observer") }}))(t)
		func() {
			defer func() { _ = recover() }()
			_, err := panics.Resume(t.Context(), h)
			t.Errorf("Resume returned %v", err)
		}()
		lk = f.resume(f.locker(lock.Options{Lease: lock.Heartbeat(time.Minute)}), t.Context(), h)
		expect.OK(t, lk.Complete())
	})
}

// TestResumedEventIsRememberedAsAcquired shows that a completed event is
// remembered for as long as the Locker that acquired its lock says, which knows
// the source, and longer if the one that completes it says so.
func TestResumedEventIsRememberedAsAcquired(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct{ acquires, resumes, remembered time.Duration }{
		"acquired for longer": {acquires: 4 * day, remembered: 4 * day},
		"resumed for longer":  {acquires: day, resumes: 2 * day, remembered: 2 * day},
		"both by default":     {remembered: day},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				h := f.handOver(f.mustAcquire(f.locker(lock.Options{Remember: c.acquires}), event("e1")), time.Hour)
				h = f.handOver(f.resume(f.locker(lock.Options{Remember: 30 * day}), t.Context(), h), time.Hour) // completes nothing
				expect.Must(t, f.resume(f.locker(lock.Options{Remember: c.resumes}), t.Context(), h).Complete())
				for _, e := range f.row().Memory.Completed {
					if got := time.Until(e.Until); got != c.remembered {
						t.Errorf("remembered for %v, want %v", got, c.remembered)
					}
				}
				if err := f.locker(lock.Options{}).Do(t.Context(), event("e1"), nothing); !isCompleted(err) {
					t.Errorf("a duplicate: %v", err)
				}
			})
		})
	}
}
