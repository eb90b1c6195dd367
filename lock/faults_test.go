package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

func TestLostAnswerOfAcquire(t *testing.T) { // F1
	for name, fault := range map[string]locktest.Fault{"connection lost": locktest.ApplyThenDrop, "no answer in time": locktest.ApplyThenHang} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.store.Plan(locktest.Acquire, fault)
				start := time.Now()
				lk := r.mustAcquire(r.locker(lock.Options{}), resource)
				if n := r.store.Requests(locktest.Acquire); n != 2 {
					t.Errorf("%d requests, want one more than without the fault", n)
				}
				if d := time.Since(start); fault == locktest.ApplyThenDrop && d > 25*time.Millisecond {
					t.Errorf("kept after %v, want one short retry", d)
				}
				r.want(lock.OutcomeAcquired)
				if err := lk.Release(); err != nil {
					t.Error(err)
				}
				if err := r.locker(lock.Options{}).Do(t.Context(), resource, nothing); err != nil {
					t.Errorf("after the release: %v", err)
				}
			})
		})
	}
}

func TestUnansweredClaimIsGivenUp(t *testing.T) { // F2, F11
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.store.Always(locktest.Acquire, locktest.ApplyThenHang)
		l := r.locker(atDeadline)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		_, err := l.Acquire(ctx, resource)
		var se *lock.StoreError
		if !errors.As(err, &se) || se.Op != "acquire" || errors.Is(err, lock.ErrHeld) {
			t.Fatalf("got %v, want a StoreError", err)
		}
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("took %v, more than the acquire budget", d)
		}
		r.store.Always(locktest.Acquire, locktest.None)
		lk := r.mustAcquire(l, resource)
		_ = lk.Release()
	})
}

func TestHungStoreStaysWithinBudget(t *testing.T) { // F11, F13
	for _, remaining := range []time.Duration{time.Second, 3 * time.Second, 10 * time.Second, 14 * time.Minute} {
		t.Run(remaining.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.store.Always(locktest.Acquire, locktest.Hang)
				r.store.Always(locktest.Release, locktest.Hang)
				ctx, cancel := context.WithTimeout(t.Context(), remaining)
				defer cancel()
				start := time.Now()
				_, err := r.locker(atDeadline).Acquire(ctx, resource)
				if !errors.As(err, new(*lock.StoreError)) {
					t.Errorf("got %v, want a StoreError", err)
				}
				if d, budget := time.Since(start), min(2*time.Second, remaining/10); d > budget {
					t.Errorf("took %v of a budget of %v", d, budget)
				}
				r.want(lock.OutcomeStoreFailed)
			})
		})
	}
}

func TestThrottledAcquireIsRetried(t *testing.T) { // F8, F9
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.store.Plan(locktest.Acquire, locktest.DropBefore, locktest.Throttle, locktest.Conflict, locktest.Conflict)
		lk := r.mustAcquire(r.locker(lock.Options{}), resource)
		if n := r.store.Requests(locktest.Acquire); n != 5 {
			t.Errorf("%d requests, want 5", n)
		}
		_ = lk.Release()
		r.kinds()

		r.store.Always(locktest.Acquire, locktest.Throttle)
		_, err := r.locker(lock.Options{}).Acquire(t.Context(), resource)
		var se *lock.StoreError
		if !errors.As(err, &se) || se.Requests != 2 || errors.Is(err, lock.ErrHeld) {
			t.Errorf("throttled throughout: %v, want a StoreError after two requests", err)
		}
		if n := r.store.Requests(locktest.Release); n != 1 {
			t.Errorf("%d releases: a rejected claim needs no taking back", n)
		}
	})
}

func TestDeniedIsNotRetried(t *testing.T) { // F10
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.store.Always(locktest.Acquire, locktest.Deny)
		start := time.Now()
		_, err := r.locker(lock.Options{}).Acquire(t.Context(), resource)
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
				r := newRig(t)
				l := r.locker(lock.Options{})
				lk := r.mustAcquire(l, event("e1"))
				r.store.Plan(locktest.Release, locktest.ApplyThenDrop)
				settle := lk.Release
				if complete {
					settle = func() error { return lk.Complete(nil) }
				}
				if err := settle(); err != nil {
					t.Errorf("got %v", err)
				}
				if n := r.store.Requests(locktest.Release); n != 2 {
					t.Errorf("%d requests, want 2", n)
				}
				r.want(lock.OutcomeAcquired, lock.OutcomeReleased)
				err := l.Do(t.Context(), event("e1"), nothing)
				if got := errors.Is(err, lock.ErrCompleted); got != complete {
					t.Errorf("next delivery: %v", err)
				}
			})
		})
	}
}

func TestFailedCompletion(t *testing.T) { // F7
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		l := r.locker(atDeadline)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		lk, err := l.Acquire(ctx, event("e1"))
		if err != nil {
			t.Fatal(err)
		}
		r.store.Always(locktest.Release, locktest.DropBefore)
		if err := lk.Complete(nil); !errors.As(err, new(*lock.StoreError)) {
			t.Errorf("got %v, want a StoreError", err)
		}
		r.want(lock.OutcomeAcquired, lock.OutcomeCompleteFailed)
		if r.store.Requests(locktest.Release) < 3 {
			t.Error("the record was not tried again")
		}
		if _, err := l.Acquire(t.Context(), event("e1")); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("a duplicate got %v: the lock must not be freed unrecorded", err)
		}
	})
}

func TestWorkOutlivesItsDeadline(t *testing.T) { // F16
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		l := r.locker(atDeadline)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := l.Do(ctx, event("e1"), func(ctx context.Context) error {
			if d, _ := ctx.Deadline(); time.Until(d) != 9*time.Second {
				t.Errorf("the work may run for %v, want the deadline less 10 %%", time.Until(d))
			}
			<-ctx.Done()
			time.Sleep(1500 * time.Millisecond) // ignores its context, past the deadline
			return nil
		})
		if err != nil {
			t.Errorf("recording on a context that has ended: %v", err)
		}
		if err := l.Do(t.Context(), event("e1"), nothing); !errors.Is(err, lock.ErrCompleted) {
			t.Errorf("duplicate: %v", err)
		}
	})
}

func TestDeadlineTooNear(t *testing.T) { // F12
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := r.locker(atDeadline).Acquire(ctx, resource)
		if e := (*lock.DeadlineError)(nil); !errors.As(err, &e) || e.Left != 100*time.Millisecond || e.Need != 110*time.Millisecond || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want a DeadlineError", err)
		}
		if n := r.store.Requests(locktest.Acquire); n != 0 {
			t.Errorf("%d requests were sent", n)
		}
		r.want(lock.OutcomeRefused)
	})
}

func TestClockBehindTheLastOwner(t *testing.T) { // F14
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		ahead := time.Now().Add(time.Hour)
		c := &driver.Claim{Name: "/resource", Token: "t", Holder: "ahead", Now: ahead, Stamp: ahead, Until: ahead.Add(time.Minute)}
		if _, ok, err := r.store.Acquire(t.Context(), c); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if _, ok, err := r.store.Release(t.Context(), &driver.Settlement{Name: c.Name, Token: c.Token}); !ok || err != nil {
			t.Fatal(ok, err)
		}
		start := time.Now()
		l := r.locker(lock.Options{})
		if err := l.Do(t.Context(), resource, nothing); err != nil {
			t.Fatalf("a free name was refused because a former owner's clock was ahead: %v", err)
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("waited %v", d)
		}
		if n := r.store.Requests(locktest.Acquire); n != 3 {
			t.Errorf("%d acquires, want the other's, a refusal and a grant", n)
		}
	})
}

func TestCancelledAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.store.Always(locktest.Acquire, locktest.Throttle)
		ctx, cancel := context.WithCancelCause(t.Context())
		because := errors.New("client went away")
		time.AfterFunc(10*time.Millisecond, func() { cancel(because) })
		start := time.Now()
		_, err := r.locker(lock.Options{}).Acquire(ctx, resource)
		if !errors.As(err, new(*lock.StoreError)) || time.Since(start) > 50*time.Millisecond {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

func TestResult(t *testing.T) { // F35
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		l := r.locker(lock.Options{})
		if err := r.mustAcquire(l, event("e1")).Complete([]byte("42")); err != nil {
			t.Fatal(err)
		}
		r.want(lock.OutcomeAcquired, lock.OutcomeReleased)
		var done *lock.CompletedError
		if _, err := l.Acquire(t.Context(), event("e1")); !errors.As(err, &done) || string(done.Result) != "42" {
			t.Errorf("got %v with result %q", err, done.Result)
		}
		if err := r.mustAcquire(l, event("e2")).Complete(nil); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Acquire(t.Context(), event("e1")); !errors.As(err, &done) || string(done.Result) != "42" {
			t.Errorf("the result was lost although no other replaced it: %v, %q", err, done.Result)
		}
		time.Sleep(25 * time.Hour)
		if err := r.mustAcquire(l, event("e3")).Complete(nil); err != nil {
			t.Fatal(err)
		}
		row, _, err := r.store.Store.Acquire(t.Context(), &driver.Claim{Name: "/resource", Event: "e3", Now: time.Now()})
		if err != nil || row.Memory.Result.Event != "" {
			t.Errorf("a forgotten event's result is still kept: %+v, %v", row.Memory, err)
		}
		r.kinds()
		r.store.Store = memstore.New()
		if err := r.mustAcquire(l, event("e1")).Complete(make([]byte, 400<<10)); err != nil {
			t.Fatal(err)
		}
		r.want(lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeResultDropped)
		if _, err := l.Acquire(t.Context(), event("e1")); !errors.As(err, &done) || done.Result != nil {
			t.Errorf("got %v with result %q", err, done.Result)
		}
	})
}

// TestErrorReportsStoreAnswer: the error is what the store said, not that the last attempt was
// cut short.
func TestErrorReportsStoreAnswer(t *testing.T) { // F8, F13
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.store.Plan(locktest.Acquire, locktest.DropBefore, locktest.Throttle)
		r.store.Always(locktest.Acquire, locktest.Hang)
		_, err := r.locker(lock.Options{}).Acquire(t.Context(), resource)
		var se *lock.StoreError
		if !errors.As(err, &se) || !se.Rejected || se.Requests < 3 {
			t.Errorf("got %+v, want the throttling", err)
		}
	})
}
