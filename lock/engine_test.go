package lock_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestDo shows P5 and the outcomes when nothing goes wrong.
func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{})
		ran := 0
		work := func(ctx context.Context) error {
			ran++
			lease, ok := lock.FromContext(ctx)
			if !ok || lease.Key != event("e1") || lease.Fence == 0 || !lease.Until.After(time.Now()) {
				t.Errorf("lease in the context: %+v, %v", lease, ok)
			}
			return nil
		}
		expect.Must(t, l.Do(t.Context(), event("e1"), work))
		f.wantOutcomes(lock.OutcomeAcquired, lock.OutcomeReleased)
		err := l.Do(t.Context(), event("e1"), work)
		var completed *lock.CompletedError
		if !errors.Is(err, lock.ErrCompleted) || !errors.As(err, &completed) || completed.Stale {
			t.Errorf("duplicate: %v, want a CompletedError", err)
		}
		f.wantOutcomes(lock.OutcomeAlreadyCompleted)
		if ran != 1 {
			t.Errorf("ran %d times", ran)
		}
		if a, w := f.faulty.Requests(fault.Acquire), f.faulty.Requests(fault.Release); a != 2 || w != 1 {
			t.Errorf("%d acquires and %d releases, want one write per outcome: 2 and 1", a, w)
		}
		if _, ok := lock.FromContext(t.Context()); ok {
			t.Error("a lease outside any lock")
		}
		time.Sleep(25 * time.Hour) // remembered for 24 h by default
		if err := l.Do(t.Context(), event("e1"), work); err != nil {
			t.Errorf("after it was forgotten: %v", err)
		}
	})
}

func TestFailedWorkIsNotCompleted(t *testing.T) { // F36
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{})
		boom := errors.New("boom")
		if err := l.Do(t.Context(), event("e1"), func(context.Context) error { return boom }); err != boom {
			t.Errorf("got %v, want the work's own error", err)
		}
		if err := l.Do(t.Context(), event("e1"), nothing); err != nil {
			t.Errorf("retry after a failure: %v", err)
		}
	})
}

func TestStaleEventIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{})
		key := func(order string) lock.Key { return lock.Key{Name: "resource", Event: "e" + order, Order: order} }
		expect.Must(t, l.Do(t.Context(), key("2"), nothing))
		f.outcomes()
		err := l.Do(t.Context(), key("1"), func(context.Context) error { t.Error("a stale event ran"); return nil })
		var completed *lock.CompletedError
		if !errors.As(err, &completed) || !completed.Stale {
			t.Errorf("older event: %v, want a CompletedError with Stale", err)
		}
		f.wantOutcomes(lock.OutcomeStale)
		if err := l.Do(t.Context(), key("3"), nothing); err != nil {
			t.Errorf("newer event: %v", err)
		}
		onlyOrder := lock.Key{Name: "ordered", Order: "7"}
		expect.Must(t, l.Do(t.Context(), onlyOrder, nothing))
		if err := l.Do(t.Context(), onlyOrder, nothing); !errors.Is(err, lock.ErrCompleted) {
			t.Errorf("the same order without event again: %v", err)
		}
	})
}

func TestHeld(t *testing.T) {
	for name, key := range map[string]lock.Key{"same event": event("e1"), "another event": event("e2"), "no event": resource} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(lock.Options{Holder: func(context.Context) string { return "thumbnails request 1" }})
				lk := f.mustAcquire(l, event("e1"))
				_, err := l.Acquire(t.Context(), key)
				var held *lock.HeldError
				if !errors.Is(err, lock.ErrHeld) || !errors.As(err, &held) {
					t.Fatalf("got %v, want a HeldError", err)
				}
				if duplicate := name == "same event"; held.Duplicate != duplicate || held.Holder != "thumbnails request 1" || !held.Until.Equal(lk.Lease().Until) || held.Key != key || held.Since.IsZero() {
					t.Errorf("got %+v", held)
				}
				expect.OK(t, lk.Release())
			})
		})
	}
}

func TestPanicAndGoexitRelease(t *testing.T) { // F18
	for name, work := range map[string]func(context.Context) error{
		"panic":  func(context.Context) error { panic("boom") },
		"Goexit": func(context.Context) error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(lock.Options{})
				done := make(chan any, 1)
				go func() {
					defer func() { done <- recover() }()
					_ = l.Do(t.Context(), event("e1"), work)
				}()
				if v := <-done; name == "panic" && v != "boom" {
					t.Errorf("recovered %v, want the work's own value", v)
				}
				if err := l.Do(t.Context(), event("e1"), nothing); err != nil {
					t.Errorf("retry: %v", err)
				}
			})
		})
	}
}

// TestDeadHolder shows P4: the lock of a dead holder is free once its lease has
// ended, and not before.
func TestDeadHolder(t *testing.T) { // F19
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(untilDeadline)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		process := skewed(l, 0)
		dead := expect.Value(process.Acquire(ctx, resource))(t)
		process.clock.Freeze() // for longer than its lease, which is death to everybody else
		end := dead.Lease().Until
		if want := time.Now().Add(time.Minute + lock.DefaultGrace); !end.Equal(want.Truncate(time.Microsecond)) {
			t.Errorf("lease ends at %v, want deadline and grace: %v", end, want)
		}
		time.Sleep(time.Until(end))
		if _, err := l.Acquire(t.Context(), resource); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("at lease end: %v, want held", err)
		}
		time.Sleep(time.Microsecond)
		f.outcomes()
		successor := f.mustAcquire(l, resource)
		f.wantOutcomes(lock.OutcomeTakenOver)
		if successor.Lease().Fence <= dead.Lease().Fence {
			t.Error("the fence did not rise")
		}
		// The late holder changes nothing (F21).
		process.clock.Thaw()
		if err := dead.Complete(); !errors.Is(err, lock.ErrLost) {
			t.Errorf("late completion: %v, want lost", err)
		}
		f.wantOutcomes(lock.OutcomeLost)
		if _, err := l.Acquire(t.Context(), resource); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("after the late completion: %v, want held by the successor", err)
		}
		expect.OK(t, successor.Complete())
	})
}

// TestFenceAfterRowDeletion shows P3: the fence is higher even after the row
// was garbage-collected, which happens a day after the last use at the
// earliest.
func TestFenceAfterRowDeletion(t *testing.T) { // F24
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{})
		var last int64
		for range 1000 {
			lk := f.mustAcquire(l, resource)
			last = lk.Lease().Fence
			_ = lk.Release()
		}
		time.Sleep(24 * time.Hour)
		f.faulty.Store = memstore.New()
		lk := f.mustAcquire(l, resource)
		if got := lk.Lease().Fence; got <= last {
			t.Errorf("fence %d after %d", got, last)
		}
		_ = lk.Release()
	})
}

func TestNestedSameName(t *testing.T) { // F33
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{MaxWait: time.Hour})
		err := l.Do(t.Context(), resource, func(ctx context.Context) error {
			inner := f.locker(lock.Options{Namespace: "inner"})
			return inner.Do(ctx, event("inner"), func(ctx context.Context) error {
				if lease, _ := lock.FromContext(ctx); lease.Key != event("inner") {
					t.Errorf("innermost lease is %q", lease.Key)
				}
				err := l.Do(ctx, resource, nothing)
				var config *lock.ConfigError
				if !errors.As(err, &config) {
					t.Errorf("the same name inside itself: %v, want a ConfigError immediately", err)
				}
				other := newFixture(t).locker(lock.Options{})
				return other.Do(ctx, resource, nothing) // another store: no conflict
			})
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestConcurrentInvocationsInOneProcess(t *testing.T) { // F39
	t.Parallel()
	f := newFixture(t)
	l := f.locker(lock.Options{MaxWait: time.Minute})
	var history []locktest.Hold
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			key := lock.Key{Name: string(rune('a' + i%16))}
			err := l.Do(t.Context(), key, func(ctx context.Context) error {
				start := time.Now()
				lease, _ := lock.FromContext(ctx)
				runtime.Gosched()
				mu.Lock()
				defer mu.Unlock()
				history = append(history, locktest.Hold{Name: key.Name, Fence: lease.Fence, Start: start, End: time.Now()})
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := locktest.CheckHistory(history); err != nil || len(history) != 64 {
		t.Errorf("%d holds, %v", len(history), err)
	}
}
