package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
)

// TestEndlessStream lets other events come all the time while one is worked on:
// the holder's event is completed, although its runs alone would take all the
// time there is, and each event that was coalesced comes before a whole run.
func TestEndlessStream(t *testing.T) { // F7
	t.Parallel()
	for name, c := range map[string]struct {
		mode     lock.LeaseMode
		deadline time.Duration               // zero: none
		takes    func(run int) time.Duration //
		fault    fault.Fault                 // of the first mark, and of the first request that closes
		atMost   time.Duration               // until it is completed
		runs     func(n int) bool            // it ran so often
	}{
		"until the deadline":  {mode: lock.UntilDeadline(), deadline: time.Minute, takes: every(time.Second), atMost: time.Minute, runs: above(50)},
		"long runs":           {mode: lock.UntilDeadline(), deadline: time.Minute, takes: every(25 * time.Second), atMost: time.Minute, runs: above(1)},
		"runs differ by half": {mode: lock.UntilDeadline(), deadline: time.Minute, takes: func(run int) time.Duration { return time.Duration(1+run%2) * 4 * time.Second }, atMost: time.Minute, runs: above(3)},
		"now and then a long one": {mode: lock.UntilDeadline(), deadline: time.Minute, takes: func(run int) time.Duration {
			if run%40 == 1 {
				return 8 * time.Second
			}
			return time.Second
		}, atMost: time.Minute, runs: above(10)},
		"a fixed lease":        {mode: lock.FixedLease(time.Minute), takes: every(time.Second), atMost: time.Minute, runs: above(50)},
		"without a deadline":   {mode: lock.Heartbeat(30 * time.Second), takes: every(time.Second), atMost: 16 * time.Minute, runs: above(500)},
		"longer than the rule": {mode: lock.Heartbeat(30 * time.Second), takes: every(20 * time.Minute), atMost: 41 * time.Minute, runs: above(1)},
		"the answer is lost":   {mode: lock.UntilDeadline(), deadline: time.Minute, takes: every(10 * time.Second), fault: fault.ApplyThenDrop, atMost: time.Minute, runs: above(3)},
		"the request is lost":  {mode: lock.UntilDeadline(), deadline: time.Minute, takes: every(10 * time.Second), fault: fault.DropBefore, atMost: time.Minute, runs: above(3)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(lock.Options{Lease: c.mode})
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if c.deadline > 0 {
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
				}
				defer cancel()
				others := stream(t, f)
				runs := 0
				var began time.Time // the last run that succeeded
				start := time.Now()
				err := l.Latest(ctx, event("first"), func(ctx context.Context) error {
					runs++
					at := time.Now()
					f.faulty.Plan(fault.Mark, c.fault)
					time.Sleep(c.takes(runs))
					began = at
					return ctx.Err()
				})
				took := time.Since(start)
				last, refused := others()
				if err != nil || took > c.atMost || !c.runs(runs) {
					t.Errorf("%v after %d runs and %v", err, runs, took)
				}
				if !last.Before(began) {
					t.Errorf("an event that came at %v was coalesced, and the last run began at %v", last, began)
				}
				if refused == 0 {
					t.Error("nobody was refused during the last run")
				}
				f.wantFree("after the last run")
			})
		})
	}
}

func every(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }
func above(n int) func(int) bool                    { return func(runs int) bool { return runs > n } }

// stream sends other events until stop is called, which returns when the last
// that was coalesced came, and how many were refused.
func stream(t *testing.T, f *fixture) (stop func() (last time.Time, refused int)) {
	l := f.locker(aMinute)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	var last time.Time
	refused := 0
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-time.After(97 * time.Millisecond):
			}
			came := time.Now()
			row := f.row()
			if row.Token == "" {
				continue // it would run by itself
			}
			switch ok, err := coalesced(ctx, l, event(fmt.Sprint(i))); {
			case ok:
				last = came
			case isHeld(err):
				refused++
			}
		}
	}()
	return func() (time.Time, int) {
		cancel()
		<-done
		return last, refused
	}
}

// TestRunsThatTakeMostOfTheTime shows that a process whose runs leave no time
// for another one takes no marks: its events are completed all the same, the
// first of them when it comes again. When runs are short again, it takes marks.
func TestRunsThatTakeMostOfTheTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode     lock.LeaseMode
		deadline time.Duration // zero: none
		takes    time.Duration // a run: a little too much for two
	}{
		"of an invocation":   {lock.UntilDeadline(), 30 * time.Second, 14600 * time.Millisecond},
		"of a fixed lease":   {lock.FixedLease(32 * time.Second), 10 * time.Minute, 15500 * time.Millisecond},
		"without a deadline": {lock.FixedLease(32 * time.Second), 0, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { runsThatTakeMostOfTheTime(t, c.mode, c.deadline, c.takes) })
		})
	}
}

// TestRunsLongerThanAHeartbeatsLease shows that a lease which is renewed says
// nothing about the time that is left: a process with such runs takes marks.
func TestRunsLongerThanAHeartbeatsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.Heartbeat(4 * time.Second)})
		for i := range 2 {
			marked := false
			err := l.Latest(t.Context(), event(fmt.Sprint(i)), func(context.Context) error {
				time.Sleep(10 * time.Second)
				if !marked {
					marked, _ = coalesced(t.Context(), l, event("another"))
				}
				return nil
			})
			if err != nil || !marked {
				t.Errorf("run %d: marked %t, %v", i, marked, err)
			}
		}
	})
}

func runsThatTakeMostOfTheTime(t *testing.T, mode lock.LeaseMode, deadline, takes time.Duration) {
	f := newFixture(t)
	l := f.locker(lock.Options{Lease: mode})
	n := 0
	deliver := func(id string) error {
		ctx, cancel := context.WithCancel(t.Context())
		if deadline > 0 {
			ctx, cancel = context.WithTimeout(ctx, deadline)
		}
		defer cancel()
		return l.Latest(ctx, event(id), func(ctx context.Context) error {
			time.Sleep(takes)
			if ok, _ := coalesced(t.Context(), f.locker(aMinute), event("another")); ok {
				n++
			}
			return ctx.Err()
		})
	}
	if err := deliver("e1"); !isDeadline(err) || n != 1 {
		t.Errorf("the first delivery: %v, %d coalesced", err, n)
	}
	for range 2 {
		if err := deliver("e1"); err != nil && !isCompleted(err) || n != 1 {
			t.Errorf("the next delivery: %v, %d coalesced", err, n)
		}
	}
	takes = time.Second
	_ = deliver("e2")
	if err := deliver("e3"); err != nil || n < 2 {
		t.Errorf("when runs are short again: %v, %d coalesced", err, n)
	}
}

// TestFailedRunIsOwed shows that the error of a run that failed is hidden if
// others rely on it or may, because it may say that the event need not come
// again. The name is free after its cooldown.
func TestFailedRunIsOwed(t *testing.T) { // F7
	t.Parallel()
	for name, c := range map[string]struct {
		marks  int
		fault  fault.Fault // of the first release
		always bool        // of all others, too
		hidden bool
	}{
		"nobody came":         {0, fault.None, false, false},
		"one came":            {1, fault.None, false, true},
		"five came":           {5, fault.None, false, true},
		"the request is lost": {1, fault.DropBefore, false, true},
		"the answer is lost":  {1, fault.ApplyThenDrop, false, true},
		"nobody knows":        {0, fault.DropBefore, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				cools := aMinute
				cools.HoldAtLeast = 20 * time.Second
				l := f.locker(cools)
				h := hold(t, l, "e1")
				for i := range c.marks {
					mustCoalesce(t, l, fmt.Sprint("other ", i))
				}
				f.outcomes()
				f.faulty.Plan(fault.Release, c.fault)
				if c.always {
					f.faulty.Always(fault.Release, c.fault)
				}
				err := h.ends(errWork)
				if err == nil || !strings.Contains(err.Error(), errWork.Error()) || errors.Is(err, errWork) == c.hidden || !c.hidden && err != errWork {
					t.Errorf("got %v", err)
				}
				if c.always {
					f.wantOutcomes(lock.OutcomeStoreFailed)
					return
				}
				f.wantOutcomes(lock.OutcomeReleased)
				if f.row().Cooldown == "" {
					t.Error("the name is free without a cooldown")
				}
				time.Sleep(cools.HoldAtLeast + time.Millisecond)
				f.wantFree("after the failure")
			})
		})
	}
}

// TestFailureBeforeMarksAreServed shows that marks which no run has served yet
// are still owed when a run fails that began after them: the one that they
// asked for, the last one, or that of the next holder after a dead one.
func TestFailureBeforeMarksAreServed(t *testing.T) { // F7, F19
	t.Parallel()
	for name, takes := range map[string]time.Duration{"one more run": time.Second, "the last run": 20 * time.Second, "after a takeover": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(aMinute)
				h := hold(t, l, "e1")
				time.Sleep(takes)
				mustCoalesce(t, l, "other")
				if takes > 0 {
					h.again(t)
				} else {
					time.Sleep(2 * time.Minute)
					dead := h
					h = hold(t, l, "e1")
					defer func() { _ = dead.ends(errWork) }()
				}
				if err := h.ends(errWork); err == nil || errors.Is(err, errWork) {
					t.Errorf("got %v", err)
				}
				f.wantFree("after the failure")
			})
		})
	}
}
