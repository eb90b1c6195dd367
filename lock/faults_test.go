package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

func TestLostAnswerOfAcquire(t *testing.T) { // F1
	for name, meets := range map[string]fault.Fault{"apply then drop": fault.ApplyThenDrop, "apply then hang": fault.ApplyThenHang} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.faulty.Plan(fault.Acquire, meets)
				start := time.Now()
				lk := f.mustAcquire(f.locker(lock.Options{}), resource)
				if n := f.faulty.Requests(fault.Acquire); n != 2 {
					t.Errorf("%d requests, want one more than without the fault", n)
				}
				if d := time.Since(start); meets == fault.ApplyThenDrop && d > 25*time.Millisecond {
					t.Errorf("acquired after %v, want one short retry", d)
				}
				f.wantOutcomes(lock.OutcomeAcquired)
				expect.OK(t, lk.Release())
				if err := f.locker(lock.Options{}).Do(t.Context(), resource, nothing); err != nil {
					t.Errorf("after the release: %v", err)
				}
			})
		})
	}
}

func TestHungStoreStaysWithinBudget(t *testing.T) { // F11, F13
	for _, remaining := range []time.Duration{time.Second, 3 * time.Second, 10 * time.Second, 14 * time.Minute} {
		t.Run(fmt.Sprintf("%v left", remaining), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.faulty.Always(fault.Acquire, fault.Hang)
				f.faulty.Always(fault.Release, fault.Hang)
				ctx, cancel := context.WithTimeout(t.Context(), remaining)
				defer cancel()
				start := time.Now()
				_, err := f.locker(untilDeadline).Acquire(ctx, resource)
				if !errors.As(err, new(*lock.StoreError)) {
					t.Errorf("got %v, want a StoreError", err)
				}
				if d, budget := time.Since(start), min(2*time.Second, remaining/10); d > budget {
					t.Errorf("took %v of a budget of %v", d, budget)
				}
				f.wantOutcomes(lock.OutcomeStoreFailed)
			})
		})
	}
}

func TestDeniedIsNotRetried(t *testing.T) { // F10
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.faulty.Always(fault.Acquire, fault.Deny)
		start := time.Now()
		_, err := f.locker(lock.Options{}).Acquire(t.Context(), resource)
		var se *lock.StoreError
		if !errors.As(err, &se) || se.Action != "test:Deny" || se.Requests != 1 || time.Since(start) != 0 {
			t.Errorf("got %v after %v, want the denied action after one request", err, time.Since(start))
		}
	})
}

func TestLostAnswerOfRelease(t *testing.T) { // F5, F6
	for name, complete := range map[string]bool{"release": false, "complete": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(lock.Options{})
				lk := f.mustAcquire(l, event("e1"))
				f.faulty.Plan(fault.Release, fault.ApplyThenDrop)
				end := lk.Release
				if complete {
					end = func() error { return lk.Complete() }
				}
				if err := end(); err != nil {
					t.Errorf("got %v", err)
				}
				if n := f.faulty.Requests(fault.Release); n != 2 {
					t.Errorf("%d requests, want 2", n)
				}
				f.wantOutcomes(lock.OutcomeAcquired, lock.OutcomeReleased)
				if err := l.Do(t.Context(), event("e1"), nothing); isCompleted(err) != complete {
					t.Errorf("next delivery: %v", err)
				}
			})
		})
	}
}

func TestFailedCompletion(t *testing.T) { // F7
	for name, c := range map[string]struct {
		fail     func(*fault.Scripted)
		requests int // at least
	}{
		"no answer": {func(s *fault.Scripted) { s.Always(fault.Release, fault.DropBefore) }, 3},
		// The store would take a release, and a duplicate would run.
		"denied": {func(s *fault.Scripted) { s.Plan(fault.Release, fault.Deny) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(untilDeadline)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				lk := expect.Value(l.Acquire(ctx, event("e1")))(t)
				c.fail(f.faulty)
				if err := lk.Complete(); !errors.As(err, new(*lock.StoreError)) {
					t.Errorf("got %v, want a StoreError", err)
				}
				f.wantOutcomes(lock.OutcomeAcquired, lock.OutcomeCompleteFailed)
				if f.faulty.Requests(fault.Release) < c.requests {
					t.Error("the completion was not tried again")
				}
				if _, err := l.Acquire(t.Context(), event("e1")); !errors.Is(err, lock.ErrHeld) {
					t.Errorf("a duplicate got %v, want held: the event is not completed", err)
				}
			})
		})
	}
}

func TestWorkOutlivesItsDeadline(t *testing.T) { // F16
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(untilDeadline)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := l.Do(ctx, event("e1"), func(ctx context.Context) error {
			if d, _ := ctx.Deadline(); time.Until(d) != 9*time.Second {
				t.Errorf("the work may run for %v, want the time to the deadline less 10 %%", time.Until(d))
			}
			<-ctx.Done()
			time.Sleep(1500 * time.Millisecond) // past the deadline
			return nil
		})
		if err != nil {
			t.Errorf("completion on a context that has ended: %v", err)
		}
		if err := l.Do(t.Context(), event("e1"), nothing); !errors.Is(err, lock.ErrCompleted) {
			t.Errorf("duplicate: %v", err)
		}
	})
}

func TestDeadlineTooNear(t *testing.T) { // F12
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := f.locker(untilDeadline).Acquire(ctx, resource)
		if e := (*lock.DeadlineError)(nil); !errors.As(err, &e) || e.Left != 100*time.Millisecond || e.Need != 110*time.Millisecond || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want a DeadlineError", err)
		}
		if n := f.faulty.Requests(fault.Acquire); n != 0 {
			t.Errorf("%d requests were sent", n)
		}
		f.wantOutcomes(lock.OutcomeRefused)
	})
}

func TestClockBehindTheLastOwner(t *testing.T) { // F14
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		clock := time.Now().Add(time.Hour)
		c := &driver.Claim{Name: "/resource", Token: "t", Holder: "ahead", Now: clock, Stamp: clock, Until: clock.Add(time.Minute)}
		expect.Granted(f.faulty.Acquire(t.Context(), c))(t)
		expect.Granted(f.faulty.Settle(t.Context(), &driver.Settlement{Name: c.Name, Token: c.Token}))(t)
		start := time.Now()
		l := f.locker(lock.Options{})
		if err := l.Do(t.Context(), resource, nothing); err != nil {
			t.Fatalf("a free name was refused because the last owner's clock was ahead: %v", err)
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("waited %v", d)
		}
		if n := f.faulty.Requests(fault.Acquire); n != 3 {
			t.Errorf("%d claims, want the last owner's, a refused and a granted one", n)
		}
	})
}

func TestCancelledAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.faulty.Always(fault.Acquire, fault.Throttle)
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("client went away")
		time.AfterFunc(10*time.Millisecond, func() { cancel(cause) })
		start := time.Now()
		_, err := f.locker(lock.Options{}).Acquire(ctx, resource)
		if !errors.As(err, new(*lock.StoreError)) || time.Since(start) > 50*time.Millisecond {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

func TestResult(t *testing.T) { // F35
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{})
		expect.Must(t, f.mustAcquire(l, event("e1")).CompleteWith(lock.Completion{Result: []byte("42")}))
		f.wantOutcomes(lock.OutcomeAcquired, lock.OutcomeReleased)
		var completed *lock.CompletedError
		if _, err := l.Acquire(t.Context(), event("e1")); !errors.As(err, &completed) || string(completed.Result) != "42" {
			t.Errorf("got %v with result %q", err, completed.Result)
		}
		expect.Must(t, f.mustAcquire(l, event("e2")).Complete())
		if _, err := l.Acquire(t.Context(), event("e1")); !errors.As(err, &completed) || string(completed.Result) != "42" {
			t.Errorf("the result was lost although no other replaced it: %v, %q", err, completed.Result)
		}
		time.Sleep(25 * time.Hour)
		expect.Must(t, f.mustAcquire(l, event("e3")).Complete())
		if row := f.row(); row.Memory.Result.Event != "" {
			t.Errorf("the result of a forgotten event is still kept: %+v", row.Memory)
		}
		f.outcomes()
		f.faulty.Store = memstore.New()
		expect.Must(t, f.mustAcquire(l, event("e1")).CompleteWith(lock.Completion{Result: make([]byte, 400<<10)}))
		f.wantOutcomes(lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeResultDropped)
		if _, err := l.Acquire(t.Context(), event("e1")); !errors.As(err, &completed) || completed.Result != nil {
			t.Errorf("got %v with result %q", err, completed.Result)
		}
	})
}

// TestErrorReportsTheCause shows that an attempt that was cut short does not
// hide why the one before it failed.
func TestErrorReportsTheCause(t *testing.T) { // F11
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.faulty.Plan(fault.Acquire, fault.Hang, fault.DropBefore)
		f.faulty.Always(fault.Acquire, fault.Hang)
		_, err := f.locker(lock.Options{}).Acquire(t.Context(), resource)
		if !isStoreError(err) || !errors.Is(err, fault.ErrInjected) {
			t.Errorf("got %v, want the broken connection", err)
		}
	})
}

// TestErrorsNameTheirCause shows that the answer of a service that locks the
// resource itself is in the text and in the tree of the error, which has no nil
// in it.
func TestErrorsNameTheirCause(t *testing.T) {
	t.Parallel()
	cause := errors.New("LeaseIdMismatch")
	for _, err := range []error{&lock.HeldError{Key: resource, Err: cause}, &lock.LostError{Key: resource, Err: cause}} {
		if !strings.HasSuffix(err.Error(), ": LeaseIdMismatch") || !errors.Is(err, cause) {
			t.Errorf("%T: %v", err, err)
		}
	}
	for _, err := range []interface{ Unwrap() []error }{&lock.HeldError{Key: resource}, &lock.LostError{Key: resource}} {
		if all := err.Unwrap(); len(all) != 1 {
			t.Errorf("%T unwraps to %v", err, all)
		}
	}
}

// TestErrorReportsStoreAnswer shows that the error is what the store answered,
// even if a later attempt had no answer, or was cut short.
func TestErrorReportsStoreAnswer(t *testing.T) { // F8, F13
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.faulty.Plan(fault.Acquire, fault.DropBefore, fault.Throttle, fault.DropBefore)
		f.faulty.Always(fault.Acquire, fault.Hang)
		_, err := f.locker(lock.Options{}).Acquire(t.Context(), resource)
		var se *lock.StoreError
		if !errors.As(err, &se) || !se.Answered || se.Unapplied || se.Requests < 3 {
			t.Errorf("got %+v, want the throttling", err)
		}
	})
}

// TestResultOfAnotherEvent shows that a duplicate never gets the result of a
// later event of the same name.
func TestResultOfAnotherEvent(t *testing.T) { // F35
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{})
		for _, e := range []string{"e1", "e2"} {
			expect.Must(t, f.mustAcquire(l, event(e)).CompleteWith(lock.Completion{Result: []byte(e)}))
		}
		var completed *lock.CompletedError
		if _, err := l.Acquire(t.Context(), event("e1")); !errors.As(err, &completed) || completed.Result != nil {
			t.Errorf("got %v with result %q, want none: e2 has replaced it", err, completed.Result)
		}
	})
}

// TestResultOfEarlierRun shows that an event that runs again without a result,
// after its first run was forgotten, does not keep the result of that run.
func TestResultOfEarlierRun(t *testing.T) { // F35
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Remember: time.Hour})
		for _, result := range [][]byte{[]byte("first"), nil} {
			expect.Must(t, f.mustAcquire(l, event("e1")).CompleteWith(lock.Completion{Result: result}))
			time.Sleep(59 * time.Minute)
			var completed *lock.CompletedError
			if _, err := l.Acquire(t.Context(), event("e1")); !errors.As(err, &completed) || string(completed.Result) != string(result) {
				t.Errorf("got %v with result %q, want %q", err, completed.Result, result)
			}
			time.Sleep(2 * time.Minute)
		}
	})
}

// TestGivingUpKeepsTheRow shows that a claim that is given up does not let
// garbage collection delete the row of the holder.
func TestGivingUpKeepsTheRow(t *testing.T) { // F2, F23
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		holder := f.mustAcquire(f.locker(lock.Options{}), resource)
		time.Sleep(time.Second)
		f.faulty.Always(fault.Acquire, fault.DropBefore)
		if _, err := f.locker(lock.Options{}).Acquire(t.Context(), resource); !isStoreError(err) {
			t.Fatal(err)
		}
		f.faulty.Always(fault.Acquire, fault.None)
		if row := f.row(); row.DeleteAfter.Before(holder.Lease().Until) {
			t.Errorf("the row may be deleted at %v, but is held until %v", row.DeleteAfter, holder.Lease().Until)
		}
		_ = holder.Release()
	})
}

// TestNoAttemptIsCutShort shows that the last attempt has time for an answer.
func TestNoAttemptIsCutShort(t *testing.T) { // F11
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		var left []time.Duration
		f.faulty.Store = fault.Hooks{Store: f.faulty.Store, OnAcquire: func(ctx context.Context, _ *driver.Claim) (driver.Row, bool, error) {
			deadline, _ := ctx.Deadline()
			left = append(left, time.Until(deadline))
			return driver.Row{}, false, errors.New("no connection")
		}}
		if _, err := f.locker(lock.Options{}).Acquire(t.Context(), resource); !isStoreError(err) {
			t.Fatal(err)
		}
		if shortest := slices.Min(left); len(left) < 3 || shortest < 50*time.Millisecond {
			t.Errorf("%d attempts, one of which had %v", len(left), shortest)
		}
	})
}

// newerRow refuses every claim with a row of a later version.
type newerRow struct{ driver.Store }

func (newerRow) Acquire(context.Context, *driver.Claim) (driver.Row, bool, error) {
	return driver.Row{Newer: true}, false, nil
}

// TestNewerRowIsAnAnswer shows that a row of a later version is an answer of
// the store, so that nobody runs the work without a lock because of it.
func TestNewerRowIsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.faulty.Store = newerRow{f.faulty.Store}
		_, err := f.locker(lock.Options{MaxWait: time.Minute}).Acquire(t.Context(), resource)
		var e *lock.StoreError
		if !errors.As(err, &e) || !e.Answered || !e.Unapplied || e.Temporary || e.Requests != 1 {
			t.Errorf("got %+v, want a StoreError that is permanent, after one request", err)
		}
	})
}

// TestAnsweredAndUnapplied shows that a claim asks each of the two facts what
// it says: an answer throttles, whatever became of earlier attempts, and a
// claim is given up if any of its attempts may have been applied.
func TestAnsweredAndUnapplied(t *testing.T) { // F2, F8, F13, F57
	silent, unsent := &driver.Error{}, &driver.Error{Unapplied: true}
	refused, repeated := &driver.Error{Answered: true, Unapplied: true}, &driver.Error{Answered: true}
	unsentForGood, conflict := &driver.Error{Lasting: true, Unapplied: true}, &driver.Error{Conflict: true, Answered: true, Unapplied: true}
	for name, c := range map[string]struct {
		errs     []*driver.Error // of the attempts; the last one for all further ones
		requests int             // 0: many
		givenUp  bool
		want     lock.StoreError
	}{
		"throttled":                         {[]*driver.Error{refused}, 2, false, lock.StoreError{Temporary: true, Answered: true, Unapplied: true}},
		"throttled, after unseen attempts":  {[]*driver.Error{repeated}, 2, true, lock.StoreError{Temporary: true, Answered: true}},
		"throttled, after silence":          {[]*driver.Error{silent, refused}, 3, true, lock.StoreError{Temporary: true, Answered: true}},
		"silent":                            {[]*driver.Error{silent}, 0, true, lock.StoreError{Temporary: true}},
		"conflicts":                         {[]*driver.Error{conflict}, 0, false, lock.StoreError{Temporary: true, Answered: true, Unapplied: true}},
		"never sent":                        {[]*driver.Error{unsent}, 0, false, lock.StoreError{Temporary: true, Unapplied: true}},
		"permanently not sent, after all":   {[]*driver.Error{refused, unsentForGood}, 2, false, lock.StoreError{Unapplied: true}},
		"permanently not sent, and silence": {[]*driver.Error{silent, unsentForGood}, 2, true, lock.StoreError{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				n := 0
				f.faulty.Store = fault.Hooks{Store: f.faulty.Store, OnAcquire: func(context.Context, *driver.Claim) (driver.Row, bool, error) {
					n++
					return driver.Row{}, false, c.errs[min(n, len(c.errs))-1]
				}}
				_, err := f.locker(lock.Options{}).Acquire(t.Context(), resource)
				var e *lock.StoreError
				if !errors.As(err, &e) || e.Temporary != c.want.Temporary || e.Answered != c.want.Answered || e.Unapplied != c.want.Unapplied {
					t.Errorf("got %+v, want %+v", err, c.want)
				}
				if n != c.requests && c.requests > 0 || c.requests == 0 && n < 4 {
					t.Errorf("%d requests, want %d (0: many)", n, c.requests)
				}
				if n := f.faulty.Requests(fault.Release); (n > 0) != c.givenUp {
					t.Errorf("%d requests to give the claim up, want any: %v", n, c.givenUp)
				}
			})
		})
	}
}
