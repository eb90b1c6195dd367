package lock_test

import (
	"context"
	"errors"
	"fmt"
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
				l := f.locker(lock.Options{Coalesce: true, Lease: c.mode})
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if c.deadline > 0 {
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
				}
				defer cancel()
				others := stream(t, f)
				runs := 0
				var began time.Time // the last run that succeeded
				start := time.Now()
				err := l.Do(ctx, event("first"), func(ctx context.Context) error {
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
	l := f.locker(coalescing)
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
			switch err := l.Do(ctx, event(fmt.Sprint(i)), nothing); {
			case isCoalesced(err):
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
	}{
		"of an invocation":   {lock.UntilDeadline(), 30 * time.Second},
		"of a fixed lease":   {lock.FixedLease(32 * time.Second), 10 * time.Minute},
		"without a deadline": {lock.FixedLease(32 * time.Second), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { runsThatTakeMostOfTheTime(t, c.mode, c.deadline) })
		})
	}
}

// TestRunsLongerThanAHeartbeatsLease shows that a lease which is renewed says
// nothing about the time that is left: a process with such runs takes marks.
func TestRunsLongerThanAHeartbeatsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Coalesce: true, Lease: lock.Heartbeat(4 * time.Second)})
		for i := range 2 {
			marked := false
			err := l.Do(t.Context(), event(fmt.Sprint(i)), func(context.Context) error {
				time.Sleep(10 * time.Second)
				if !marked {
					marked = isCoalesced(l.Do(t.Context(), event("another"), nothing))
				}
				return nil
			})
			if err != nil || !marked {
				t.Errorf("run %d: marked %t, %v", i, marked, err)
			}
		}
	})
}

func runsThatTakeMostOfTheTime(t *testing.T, mode lock.LeaseMode, deadline time.Duration) {
	f := newFixture(t)
	l := f.locker(lock.Options{Coalesce: true, Lease: mode})
	takes, coalesced := 20*time.Second, 0
	deliver := func(id string) error {
		ctx, cancel := context.WithCancel(t.Context())
		if deadline > 0 {
			ctx, cancel = context.WithTimeout(ctx, deadline)
		}
		defer cancel()
		return l.Do(ctx, event(id), func(ctx context.Context) error {
			time.Sleep(takes)
			if isCoalesced(f.locker(coalescing).Do(t.Context(), event("another"), nothing)) {
				coalesced++
			}
			return ctx.Err()
		})
	}
	if err := deliver("e1"); !errors.Is(err, lock.ErrOwed) || coalesced != 1 {
		t.Errorf("the first delivery: %v, %d coalesced", err, coalesced)
	}
	for range 2 {
		if err := deliver("e1"); err != nil && !isCompleted(err) || coalesced != 1 {
			t.Errorf("the next delivery: %v, %d coalesced", err, coalesced)
		}
	}
	takes = time.Second
	_ = deliver("e2")
	if err := deliver("e3"); err != nil || coalesced < 2 {
		t.Errorf("when runs are short again: %v, %d coalesced", err, coalesced)
	}
}

// TestFailedRunIsOwed shows that the end of a run that failed says whether
// others rely on it, and frees the name.
func TestFailedRunIsOwed(t *testing.T) { // F7
	t.Parallel()
	for name, c := range map[string]struct {
		marks int
		fault fault.Fault // of the first release
		owed  bool
	}{
		"nobody came":         {0, fault.None, false},
		"one came":            {1, fault.None, true},
		"five came":           {5, fault.None, true},
		"the request is lost": {1, fault.DropBefore, true},
		"the answer is lost":  {1, fault.ApplyThenDrop, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(coalescing)
				lk := f.mustAcquire(l, event("e1"))
				for i := range c.marks {
					if err := l.Do(t.Context(), event(fmt.Sprint("other ", i)), nothing); !isCoalesced(err) {
						t.Fatal(err)
					}
				}
				f.outcomes()
				f.faulty.Plan(fault.Release, c.fault)
				var owed *lock.OwedError
				if err := lk.Release(); errors.As(err, &owed) != c.owed || c.owed && owed.Again {
					t.Errorf("Release: %v", err)
				}
				if c.owed {
					f.wantOutcomes(lock.OutcomeOwed, lock.OutcomeReleased)
				} else {
					f.wantOutcomes(lock.OutcomeReleased)
				}
				if err := lk.Complete(); !errors.Is(err, lock.ErrReleased) {
					t.Errorf("Complete after that: %v", err)
				}
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
				l := f.locker(coalescing)
				lk := f.mustAcquire(l, event("e1"))
				time.Sleep(takes)
				if err := l.Do(t.Context(), event("other"), nothing); !isCoalesced(err) {
					t.Fatal(err)
				}
				if takes > 0 {
					var owed *lock.OwedError
					if err := lk.Complete(); !errors.As(err, &owed) || !owed.Again {
						t.Fatal(err)
					}
				} else {
					time.Sleep(2 * time.Minute)
					lk = f.mustAcquire(l, event("e1"))
				}
				if err := lk.Release(); !errors.Is(err, lock.ErrOwed) {
					t.Errorf("Release: %v", err)
				}
				f.wantFree("after the failure")
			})
		})
	}
}
