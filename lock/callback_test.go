package lock_test

import (
	"context"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
)

// failingHandler is a log handler that calls fail at the message of one
// outcome.
type failingHandler struct {
	slog.Handler
	at   lock.Outcome
	fail func()
}

func (h failingHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h failingHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "lambdalock: "+string(h.at) {
		h.fail()
	}
	return nil
}

// TestCallbacksThatPanic shows that no name stays held and no goroutine is left
// when a callback panics or ends its goroutine, at any outcome. The bubble of
// synctest fails the test if a goroutine is left.
func TestCallbacksThatPanic(t *testing.T) { // F48
	boom := func() { panic("boom") }
	for name, fail := range map[string]func(){"panic": boom, "Goexit": runtime.Goexit} {
		for _, at := range []lock.Outcome{lock.OutcomeAcquired, lock.OutcomeTakenOver, lock.OutcomeRenewed, lock.OutcomeReleased, lock.OutcomeLost, lock.OutcomeStoreFailed, lock.OutcomeResultDropped, lock.OutcomeForgotten, lock.OutcomeHeld} {
			for _, where := range []string{"observer", "log handler", "holder"} {
				t.Run(name+" of the "+where+" at "+string(at), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { callbackPanics(t, fail, at, where) })
				})
			}
		}
	}
}

func callbackPanics(t *testing.T, fail func(), at lock.Outcome, where string) {
	f := newFixture(t)
	o := lock.Options{Lease: lock.Heartbeat(9 * time.Second), MaxWait: 20 * time.Second, Logger: discard, Remember: time.Hour}
	switch where {
	case "observer":
		o.Observe = func(_ context.Context, o lock.Observation) {
			if o.Outcome == at {
				fail()
			}
		}
	case "log handler":
		o.Logger = slog.New(failingHandler{Handler: slog.DiscardHandler, at: at, fail: fail})
	case "holder":
		o.Holder = func(context.Context) string { fail(); return "" }
	}
	l := expect.Value(lock.New(f.faulty, &o))(t)
	switch at {
	case lock.OutcomeTakenOver:
		f.mustAcquire(f.locker(lock.Options{Lease: lock.FixedLease(10 * time.Second)}), resource) // and dies
	case lock.OutcomeHeld:
		other := f.mustAcquire(f.locker(lock.Options{}), resource)
		time.AfterFunc(30*time.Second, func() { _ = other.Release() })
	case lock.OutcomeStoreFailed:
		f.faulty.Plan(fault.Renew, fault.Deny)
	case lock.OutcomeLost:
		f.faulty.Always(fault.Renew, fault.Deny)
	case lock.OutcomeForgotten:
		for i := range 30 {
			_ = f.locker(lock.Options{}).Do(t.Context(), event(string(rune('a'+i))+"-0123456789-0123456789-0123456789"), nothing)
		}
	}
	ended := make(chan any)
	go func() {
		defer func() { ended <- recover() }()
		lk, err := l.Acquire(t.Context(), event("e1-0123456789-0123456789-0123456789"))
		if err != nil {
			return
		}
		defer func() { _ = lk.Release() }()
		time.Sleep(8 * time.Second)
		_ = lk.CompleteWith(lock.Completion{Result: make([]byte, 400<<10)})
	}()
	<-ended
	if n := f.faulty.Requests(fault.Renew); n > 0 && (at == lock.OutcomeAcquired || at == lock.OutcomeTakenOver) {
		t.Errorf("%d renewals of a lock that the caller never got", n)
	}
	if where != "holder" && (at == lock.OutcomeAcquired || at == lock.OutcomeTakenOver) {
		f.wantFree("right after the callback")
	}
	before := f.faulty.Requests(fault.Renew)
	time.Sleep(time.Minute) // the other locks are over, too
	if n := f.faulty.Requests(fault.Renew) - before; n > 0 && at != lock.OutcomeHeld && where != "holder" {
		t.Errorf("%d renewals after the end", n)
	}
	f.wantFree("after the callback")
}

// TestPanicInHeartbeat shows that a panic of an observer on the heartbeat's
// goroutine reaches the caller, after the lock has ended. The heartbeat goes on
// until then.
func TestPanicInHeartbeat(t *testing.T) { // F48
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := expect.Value(lock.New(f.faulty, &lock.Options{Lease: lock.Heartbeat(9 * time.Second), Logger: discard, Observe: func(_ context.Context, o lock.Observation) {
			if o.Outcome == lock.OutcomeRenewed {
				panic("boom")
			}
		}}))(t)
		lk := f.mustAcquire(l, event("e1"))
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
			_ = lk.Complete()
		}()
		if _, err := f.locker(lock.Options{}).Acquire(t.Context(), event("e1")); !isCompleted(err) {
			t.Errorf("a duplicate got %v, want completed", err)
		}
	})
}

// TestReleaseAfterAPanicIsRepeated shows that a lock which its caller never got
// is released with the patience of any other release.
func TestReleaseAfterAPanicIsRepeated(t *testing.T) { // F48
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := expect.Value(lock.New(f.faulty, &lock.Options{Logger: discard, Observe: func(context.Context, lock.Observation) { panic("boom") }}))(t)
		f.faulty.Plan(fault.Release, fault.Hang)
		func() {
			defer func() {
				if p := recover(); p != "boom" {
					t.Errorf("recovered %v, want the observer's panic", p)
				}
			}()
			_, _ = l.Acquire(t.Context(), resource)
		}()
		if n := f.faulty.Requests(fault.Release); n != 2 {
			t.Errorf("%d requests to release, want 2", n)
		}
		f.wantFree("after the panic")
	})
}
