package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
)

// TestSetEndsInsideAnObserver ends a set inside an observer, or a log handler,
// that is told how one of its locks ended or was renewed: there, or in a
// goroutine for which it waits. Nothing hangs, and the second end learns the
// outcome of the first, as with one lock.
func TestSetEndsInsideAnObserver(t *testing.T) { // F48
	t.Parallel()
	ends := map[string]func(*lock.Lock) error{"Complete": (*lock.Lock).Complete, "Release": (*lock.Lock).Release}
	for _, outer := range []string{"Complete", "Release", "nothing"} {
		for inner, end := range ends {
			for _, where := range []string{"there", "in another goroutine", "in the log handler"} {
				for _, faulty := range []fault.Fault{fault.None, fault.Deny} {
					t.Run(fmt.Sprintf("%s inside %s, %s, %v", inner, outer, where, faulty), func(t *testing.T) {
						t.Parallel()
						synctest.Test(t, func(t *testing.T) { endSetInside(t, outer, ends[outer], inner, end, where, faulty) })
					})
				}
			}
		}
	}
}

func endSetInside(t *testing.T, outer string, endOuter func(*lock.Lock) error, inner string, end func(*lock.Lock) error, where string, faulty fault.Fault) {
	f := newFixture(t)
	var all atomic.Pointer[lock.Lock]
	var busy atomic.Bool
	within := make(chan error, 10)
	call := func() {
		set := all.Load()
		if set == nil || !busy.CompareAndSwap(false, true) {
			return
		}
		defer busy.Store(false)
		if where == "in another goroutine" {
			done := make(chan error)
			go func() { done <- end(set) }()
			within <- <-done
			return
		}
		within <- end(set)
	}
	o := lock.Options{Lease: lock.Heartbeat(9 * time.Second), Logger: discard}
	if where == "in the log handler" {
		o.Logger = slog.New(everyCall{slog.DiscardHandler, &callFailing{nth: -1, always: call}})
	} else {
		o.Observe = func(context.Context, lock.Observation) { call() }
	}
	l := expect.Value(lock.New(f.faulty, &o))(t)
	set := expect.Value(l.AcquireAll(t.Context(), keys("e", "a", "b", "c")...))(t)
	all.Store(set)
	f.faulty.Plan(fault.Release, faulty)
	var first error
	if endOuter == nil {
		time.Sleep(4 * time.Second) // one renewal
		first = end(set)
	} else {
		first = endOuter(set)
	}
	if (first != nil) != (faulty != fault.None) || len(within) == 0 {
		t.Errorf("%s: %v, and %d calls within", outer, first, len(within))
	}
	synctest.Wait()
	close(within)
	for err := range within {
		if want := first; inner == "Complete" && outer == "Release" {
			if !errors.Is(err, lock.ErrReleased) {
				t.Errorf("Complete after Release: %v", err)
			}
		} else if !errors.Is(err, want) {
			t.Errorf("%s within: %v, want %v", inner, err, want)
		}
	}
}
