package lock_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// rig is a store that can be made to fail, and what was observed of it.
type rig struct {
	t     *testing.T
	store *locktest.Faulty
	mu    sync.Mutex
	seen  []lock.Observation
}

func newRig(t *testing.T) *rig {
	return &rig{t: t, store: locktest.NewFaulty(memstore.New())}
}

func (r *rig) locker(o lock.Options) *lock.Locker {
	r.t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	o.Observe = func(_ context.Context, o lock.Observation) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seen = append(r.seen, o)
	}
	l, err := lock.New(r.store, &o)
	if err != nil {
		r.t.Fatal(err)
	}
	return l
}

// kinds is what was observed since the last call.
func (r *rig) kinds() []lock.Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	var k []lock.Outcome
	for _, o := range r.seen {
		k = append(k, o.Outcome)
	}
	r.seen = nil
	return k
}

func (r *rig) want(kinds ...lock.Outcome) {
	r.t.Helper()
	if got := r.kinds(); !slices.Equal(got, kinds) {
		r.t.Errorf("observed %q, want %q", got, kinds)
	}
}

func (r *rig) mustAcquire(l *lock.Locker, key lock.Key) *lock.Lock {
	r.t.Helper()
	lk, err := l.Acquire(r.t.Context(), key)
	if err != nil {
		r.t.Fatalf("acquire: %v", err)
	}
	return lk
}

var resource = lock.Key{Name: "resource"}

func event(id string) lock.Key { return lock.Key{Name: "resource", Event: id} }

// atDeadline is how classic Lambda is set up.
var atDeadline = lock.Options{Lease: lock.UntilDeadline()}

func nothing(context.Context) error { return nil }

// TestDo shows P5 and the outcomes of a key without faults.
func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		l := r.locker(lock.Options{})
		ran := 0
		work := func(ctx context.Context) error {
			ran++
			lease, ok := lock.FromContext(ctx)
			if !ok || lease.Key != event("e1") || lease.Fence == 0 || !lease.Until.After(time.Now()) {
				t.Errorf("lease in the context: %+v, %v", lease, ok)
			}
			return nil
		}
		if err := l.Do(t.Context(), event("e1"), work); err != nil {
			t.Fatal(err)
		}
		r.want(lock.OutcomeAcquired, lock.OutcomeReleased)
		err := l.Do(t.Context(), event("e1"), work)
		var done *lock.CompletedError
		if !errors.Is(err, lock.ErrCompleted) || !errors.As(err, &done) || done.Stale {
			t.Errorf("duplicate: %v, want a DoneError", err)
		}
		r.want(lock.OutcomeAlreadyCompleted)
		if ran != 1 {
			t.Errorf("ran %d times", ran)
		}
		if a, w := r.store.Requests(locktest.Acquire), r.store.Requests(locktest.Release); a != 2 || w != 1 {
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
		r := newRig(t)
		l := r.locker(lock.Options{})
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
		r := newRig(t)
		l := r.locker(lock.Options{})
		key := func(order string) lock.Key { return lock.Key{Name: "resource", Event: "e" + order, Order: order} }
		if err := l.Do(t.Context(), key("2"), nothing); err != nil {
			t.Fatal(err)
		}
		r.kinds()
		err := l.Do(t.Context(), key("1"), func(context.Context) error { t.Error("an overtaken event ran"); return nil })
		var done *lock.CompletedError
		if !errors.As(err, &done) || !done.Stale {
			t.Errorf("older event: %v, want a stale DoneError", err)
		}
		r.want(lock.OutcomeStale)
		if err := l.Do(t.Context(), key("3"), nothing); err != nil {
			t.Errorf("newer event: %v", err)
		}
		onlyOrder := lock.Key{Name: "ordered", Order: "7"}
		if err := l.Do(t.Context(), onlyOrder, nothing); err != nil {
			t.Fatal(err)
		}
		if err := l.Do(t.Context(), onlyOrder, nothing); !errors.Is(err, lock.ErrCompleted) {
			t.Errorf("the same order without event again: %v", err)
		}
	})
}

func TestHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		l := r.locker(lock.Options{Holder: func(context.Context) string { return "thumbnails request 1" }})
		lk := r.mustAcquire(l, event("e1"))
		for _, c := range []struct {
			key       lock.Key
			duplicate bool
		}{{event("e1"), true}, {event("e2"), false}, {resource, false}} {
			_, err := l.Acquire(t.Context(), c.key)
			var held *lock.HeldError
			if !errors.Is(err, lock.ErrHeld) || !errors.As(err, &held) {
				t.Fatalf("%v: %v, want a HeldError", c.key, err)
			}
			if held.Duplicate != c.duplicate || held.Holder != "thumbnails request 1" || !held.Until.Equal(lk.Lease().Until) || held.Key != c.key || held.Since.IsZero() {
				t.Errorf("%v: %+v", c.key, held)
			}
		}
		if err := lk.Release(); err != nil {
			t.Error(err)
		}
		if err := lk.Release(); err != nil {
			t.Errorf("second release: %v", err)
		}
		if n := r.store.Requests(locktest.Release); n != 1 {
			t.Errorf("%d release requests for two calls", n)
		}
	})
}

func TestPanicAndGoexitRelease(t *testing.T) { // F18
	for name, work := range map[string]func(context.Context) error{
		"panic":  func(context.Context) error { panic("boom") },
		"Goexit": func(context.Context) error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				l := r.locker(lock.Options{})
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

// TestDeadHolder shows P4: the lock of a dead holder is free at lease end, neither
// earlier nor later.
func TestDeadHolder(t *testing.T) { // F19
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		l := r.locker(atDeadline)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		dead, err := l.Acquire(ctx, resource) // and never released
		if err != nil {
			t.Fatal(err)
		}
		end := dead.Lease().Until
		if want := time.Now().Add(time.Minute + lock.DefaultGrace); !end.Equal(want.Truncate(time.Microsecond)) {
			t.Errorf("lease ends at %v, want deadline and grace: %v", end, want)
		}
		time.Sleep(time.Until(end))
		if _, err := l.Acquire(t.Context(), resource); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("at lease end: %v, want held", err)
		}
		time.Sleep(time.Microsecond)
		r.kinds()
		successor := r.mustAcquire(l, resource)
		r.want(lock.OutcomeTakenOver)
		if successor.Lease().Fence <= dead.Lease().Fence {
			t.Error("the fence did not rise")
		}
		// F21: the late holder changes nothing.
		if err := dead.Complete(nil); !errors.Is(err, lock.ErrLost) {
			t.Errorf("late completion: %v, want lost", err)
		}
		r.want(lock.OutcomeLost)
		if _, err := l.Acquire(t.Context(), resource); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("after the late completion: %v, want held by the successor", err)
		}
		if err := successor.Complete(nil); err != nil {
			t.Error(err)
		}
	})
}

// TestFenceAfterRowDeletion shows P3: the fence rises also over a garbage
// collection, which comes a day after the last use at the earliest.
func TestFenceAfterRowDeletion(t *testing.T) { // F24
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		l := r.locker(lock.Options{})
		var last int64
		for range 1000 {
			lk := r.mustAcquire(l, resource)
			last = lk.Lease().Fence
			_ = lk.Release()
		}
		time.Sleep(24 * time.Hour)
		r.store.Store = memstore.New()
		lk := r.mustAcquire(l, resource)
		if got := lk.Lease().Fence; got <= last {
			t.Errorf("fence %d after %d", got, last)
		}
		_ = lk.Release()
	})
}

func TestNestedSameName(t *testing.T) { // F33
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		l := r.locker(lock.Options{MaxWait: time.Hour})
		err := l.Do(t.Context(), resource, func(ctx context.Context) error {
			return l.Do(ctx, lock.Key{Name: "inner"}, func(ctx context.Context) error {
				if lease, _ := lock.FromContext(ctx); lease.Key.Name != "inner" {
					t.Errorf("innermost lease is %q", lease.Key.Name)
				}
				err := l.Do(ctx, resource, nothing)
				var config *lock.ConfigError
				if !errors.As(err, &config) {
					t.Errorf("the same name inside itself: %v, want a ConfigError at once", err)
				}
				other := newRig(t).locker(lock.Options{})
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
	r := newRig(t)
	l := r.locker(lock.Options{MaxWait: time.Minute})
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
