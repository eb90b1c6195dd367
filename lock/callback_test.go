package lock_test

import (
	"context"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/locktest"
)

// angry is a log handler that panics, or ends its goroutine, at one message.
type angry struct {
	slog.Handler
	at  lock.Outcome
	how func()
}

func (a angry) Enabled(context.Context, slog.Level) bool { return true }

func (a angry) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "lambdalock: "+string(a.at) {
		a.how()
	}
	return nil
}

// TestCallbacksThatPanic: whatever the code that is called back does, at whatever
// outcome, no lease and no goroutine is left. A goroutine that is left fails the test,
// and a name that is held.
func TestCallbacksThatPanic(t *testing.T) { // F48
	boom := func() { panic("boom") }
	for name, how := range map[string]func(){"panic": boom, "Goexit": runtime.Goexit} {
		for _, at := range []lock.Outcome{lock.OutcomeAcquired, lock.OutcomeTakenOver, lock.OutcomeWaited, lock.OutcomeRenewed, lock.OutcomeReleased, lock.OutcomeLost, lock.OutcomeStoreFailed, lock.OutcomeResultDropped, lock.OutcomeForgotten, lock.OutcomeHeld} {
			for _, where := range []string{"observer", "log handler", "holder"} {
				t.Run(name+" of the "+where+" at "+string(at), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { callbackPanics(t, how, at, where) })
				})
			}
		}
	}
}

func callbackPanics(t *testing.T, how func(), at lock.Outcome, where string) {
	r := newRig(t)
	o := lock.Options{Lease: lock.Heartbeat(9 * time.Second), MaxWait: 20 * time.Second, Logger: discard, Remember: time.Hour}
	switch where {
	case "observer":
		o.Observe = func(_ context.Context, o lock.Observation) {
			if o.Outcome == at {
				how()
			}
		}
	case "log handler":
		o.Logger = slog.New(angry{Handler: slog.DiscardHandler, at: at, how: how})
	case "holder":
		o.Holder = func(context.Context) string { how(); return "" }
	}
	l, err := lock.New(r.store, &o)
	if err != nil {
		t.Fatal(err)
	}
	switch at {
	case lock.OutcomeTakenOver:
		r.mustAcquire(r.locker(lock.Options{Lease: lock.FixedLease(10 * time.Second)}), resource) // and dies
	case lock.OutcomeWaited:
		other := r.mustAcquire(r.locker(lock.Options{}), resource)
		time.AfterFunc(time.Second, func() { _ = other.Release() })
	case lock.OutcomeHeld:
		other := r.mustAcquire(r.locker(lock.Options{}), resource)
		time.AfterFunc(30*time.Second, func() { _ = other.Release() })
	case lock.OutcomeStoreFailed:
		r.store.Plan(locktest.Renew, locktest.Deny)
	case lock.OutcomeLost:
		r.store.Always(locktest.Renew, locktest.Deny)
	case lock.OutcomeForgotten:
		for i := range 30 {
			_ = r.locker(lock.Options{}).Do(t.Context(), event(string(rune('a'+i))+"-0123456789-0123456789-0123456789"), nothing)
		}
	}
	done := make(chan any)
	go func() {
		defer func() { done <- recover() }()
		lk, err := l.Acquire(t.Context(), event("e1-0123456789-0123456789-0123456789"))
		if err != nil {
			return
		}
		defer func() { _ = lk.Release() }()
		time.Sleep(8 * time.Second)
		_ = lk.Complete(make([]byte, 400<<10))
	}()
	<-done
	if n := r.store.Requests(locktest.Renew); n > 0 && (at == lock.OutcomeAcquired || at == lock.OutcomeTakenOver || at == lock.OutcomeWaited) {
		t.Errorf("%d renewals of a lock that the caller never got", n)
	}
	if where != "holder" && (at == lock.OutcomeAcquired || at == lock.OutcomeTakenOver || at == lock.OutcomeWaited) {
		r.free("right after the callback")
	}
	before := r.store.Requests(locktest.Renew)
	time.Sleep(time.Minute) // the others' locks are over, too
	if n := r.store.Requests(locktest.Renew) - before; n > 0 && at != lock.OutcomeHeld && where != "holder" {
		t.Errorf("%d renewals after the end", n)
	}
	r.free("after the callback")
}

// TestPanicInHeartbeat: it reaches the caller, where it belongs, after the lock was
// ended; the heartbeat goes on until then.
func TestPanicInHeartbeat(t *testing.T) { // F48
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		l, err := lock.New(r.store, &lock.Options{Lease: lock.Heartbeat(9 * time.Second), Logger: discard, Observe: func(_ context.Context, o lock.Observation) {
			if o.Outcome == lock.OutcomeRenewed {
				panic("boom")
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		lk := r.mustAcquire(l, event("e1"))
		time.Sleep(time.Minute)
		if err := lk.Context().Err(); err != nil {
			t.Errorf("the work was stopped: %v", context.Cause(lk.Context()))
		}
		func() {
			defer func() {
				if p := recover(); p != "boom" {
					t.Errorf("recovered %v, want the observer's panic", p)
				}
			}()
			_ = lk.Complete(nil)
		}()
		if _, err := r.locker(lock.Options{}).Acquire(t.Context(), event("e1")); !isDone(err) {
			t.Errorf("the event was not recorded: %v", err)
		}
	})
}
