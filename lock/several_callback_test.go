package lock_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
)

// callFailing calls fail at the nth call, and always, if that is not nil, at
// each.
type callFailing struct {
	calls  atomic.Int64 // also of heartbeats
	nth    int64
	fail   func()
	always func()
}

func (c *callFailing) call() {
	if c.always != nil {
		c.always()
	}
	if c.calls.Add(1) == c.nth {
		c.fail()
	}
}

// everyCall is a log handler that calls c with every line.
type everyCall struct {
	slog.Handler
	c *callFailing
}

func (everyCall) Enabled(context.Context, slog.Level) bool { return true }

func (h everyCall) Handle(context.Context, slog.Record) error { h.c.call(); return nil }

// TestCallbacksOfASetThatPanic shows that no name stays held, and no goroutine
// is left, whichever call of a callback panics or ends its goroutine while a
// set is acquired, refused, completed or released.
func TestCallbacksOfASetThatPanic(t *testing.T) { // F48
	for how, fail := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		for _, where := range []string{"observer", "log handler", "holder"} {
			for _, what := range []string{"completed", "released", "refused"} {
				for nth := int64(1); nth <= 9; nth++ {
					t.Run(fmt.Sprintf("%s in call %d of the %s, %s", how, nth, where, what), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							callbackOfASetFails(t, &callFailing{nth: nth, fail: fail}, where, what)
						})
					})
				}
			}
		}
	}
}

func callbackOfASetFails(t *testing.T, c *callFailing, where, what string) {
	f := newFixture(t)
	names := []string{"a", "b", "c"}
	o := lock.Options{Lease: lock.Heartbeat(9 * time.Second), Logger: discard}
	switch where {
	case "observer":
		o.Observe = func(context.Context, lock.Observation) { c.call() }
	case "log handler":
		o.Logger = slog.New(everyCall{slog.DiscardHandler, c})
	case "holder":
		o.Holder = func(context.Context) string { c.call(); return "holder" }
	}
	l := expect.Value(lock.New(f.faulty, &o))(t)
	if what == "refused" {
		f.mustAcquire(f.locker(stays), lock.Key{Name: "d"})
		names = append(names, "d")
	}
	worked := false
	ended := make(chan any)
	go func() {
		defer func() { ended <- recover() }()
		all, err := l.AcquireAll(t.Context(), keys("e", names...)...)
		if err != nil {
			return
		}
		defer func() { _ = all.Release() }()
		time.Sleep(4 * time.Second) // one renewal
		worked = true
		if what == "completed" {
			_ = all.Complete()
		}
	}()
	<-ended
	before := f.faulty.Requests(fault.Renew)
	f.wantAllFree("right after the callback", "a", "b", "c")
	time.Sleep(time.Minute)
	if n := f.faulty.Requests(fault.Renew) - before; n > 0 {
		t.Errorf("%d renewals after the end", n)
	}
	if completed := f.remembers("/a") && f.remembers("/b") && f.remembers("/c"); completed != (worked && what == "completed") {
		t.Errorf("the event is completed under every name: %v", completed)
	}
}

// remembers reports whether the row of name remembers an event.
func (f *fixture) remembers(name string) bool {
	row := readRow(f.t, f.faulty.Store, name)
	return len(row.Memory.Completed) > 0
}
