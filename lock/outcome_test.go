package lock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestCompleteAndReleaseTwice shows that the first call ends the lock, and that
// later calls return its outcome without another request.
func TestCompleteAndReleaseTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.FixedLease(10 * time.Second)})
		lk := f.mustAcquire(l, event("e1"))
		expect.Must(t, lk.Release())
		if err := lk.Release(); err != nil {
			t.Errorf("Release after Release: %v", err)
		}
		if err := lk.Complete(); !errors.Is(err, lock.ErrReleased) {
			t.Errorf("Complete after Release: %v, want ErrReleased", err)
		}
		if n := f.faulty.Requests(fault.Release); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
		lk = f.mustAcquire(l, event("e1"))
		f.faulty.Always(fault.Release, fault.Deny)
		first := lk.Complete()
		if !isStoreError(first) {
			t.Fatalf("denied: %v", first)
		}
		f.faulty.Always(fault.Release, fault.None)
		if err := lk.Complete(); err != first {
			t.Errorf("Complete after a failed Complete: %v, want %v", err, first)
		}
		if err := lk.Release(); err != first {
			t.Errorf("Release after a failed Complete: %v, want %v", err, first)
		}
		if _, err := l.Acquire(t.Context(), event("e1")); !isHeld(err) {
			t.Errorf("a duplicate got %v, want held until the lease ends", err)
		}
		time.Sleep(11 * time.Second)
		lk = f.mustAcquire(l, event("e1"))
		for range 3 {
			if err := lk.Complete(); err != nil {
				t.Errorf("Complete after Complete: %v", err)
			}
		}
	})
}

// TestUnansweredCompletionThenTakeover shows that a completion is lost if its
// first attempt had no answer, and the next one finds another owner and no
// trace of the first.
func TestUnansweredCompletionThenTakeover(t *testing.T) { // F6, F21
	for name, key := range map[string]lock.Key{
		"event": event("e1"), "order": {Name: "resource", Order: "5"}, "both": {Name: "resource", Event: "e1", Order: "5"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				store, dropped := f.faulty.Store, false
				f.faulty.Store = fault.Hooks{Store: store, OnSettle: func(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
					if dropped {
						return store.Settle(ctx, s)
					}
					dropped = true
					_, _, err := store.Settle(ctx, &driver.Settlement{Name: s.Name, Token: s.Token}) // by hand
					now := time.Now().Add(time.Second)
					_, _, err2 := store.Acquire(ctx, &driver.Claim{Name: s.Name, Token: "other", Now: now, Stamp: now, Until: now.Add(time.Minute)})
					return driver.Row{}, false, errors.Join(err, err2, errors.New("connection lost"))
				}}
				lk := f.mustAcquire(f.locker(lock.Options{}), key)
				f.outcomes()
				if err := lk.Complete(); !errors.Is(err, lock.ErrLost) {
					t.Errorf("got %v, want lost: the row has no completion", err)
				}
				f.wantOutcomes(lock.OutcomeLost)
			})
		})
	}
}

// TestLostAnswerOfOrderedCompletion shows that the order alone tells that a
// completion was applied.
func TestLostAnswerOfOrderedCompletion(t *testing.T) { // F6
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		key := lock.Key{Name: "resource", Order: "5"}
		l := f.locker(lock.Options{})
		lk := f.mustAcquire(l, key)
		f.faulty.Plan(fault.Release, fault.ApplyThenDrop)
		if err := lk.Complete(); err != nil {
			t.Errorf("got %v, although it was applied", err)
		}
		if _, err := l.Acquire(t.Context(), key); !errors.Is(err, lock.ErrCompleted) {
			t.Errorf("the same order again: %v", err)
		}
		lk = f.mustAcquire(l, lock.Key{Name: "resource", Order: "6"})
		f.faulty.Plan(fault.Release, fault.ApplyThenHang)
		time.AfterFunc(500*time.Millisecond, func() {
			expect.OK(t, l.Do(t.Context(), lock.Key{Name: "resource", Order: "7"}, nothing))
		})
		if err := lk.Complete(); err != nil {
			t.Errorf("got %v after a later order was completed, although it was applied", err)
		}
	})
}

// TestStoreErrorsAreCopied shows that the engine adds to a copy of the store's
// error, not to the store's own value. With the race detector it shows more.
func TestStoreErrorsAreCopied(t *testing.T) {
	t.Parallel()
	same := &driver.Error{Lasting: true, Store: "s", Answered: true, Unapplied: true, Err: errors.New("no")}
	before := *same
	s := fault.Hooks{OnAcquire: func(context.Context, *driver.Claim) (driver.Row, bool, error) { return driver.Row{}, false, same }}
	l := expect.Value(lock.New(s, &lock.Options{Logger: discard}))(t)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			var se *lock.StoreError
			if _, err := l.Acquire(t.Context(), resource); !errors.As(err, &se) || se.Op != "acquire" || se.Requests != 1 || se.Store != "s" {
				t.Errorf("got %+v", err)
			}
		})
	}
	wg.Wait()
	if *same != before {
		t.Errorf("the store's own error became %+v", same)
	}
}

// TestConflictsAreRetried covers a table with multi-Region strong consistency,
// which answers with a conflict while another Region writes the row.
func TestConflictsAreRetried(t *testing.T) { // F9, F45
	for op, end := range map[string]func(*lock.Lock) error{
		fault.Acquire: (*lock.Lock).Release,
		fault.Renew:   func(lk *lock.Lock) error { time.Sleep(4 * time.Second); return lk.Release() },
		fault.Release: func(lk *lock.Lock) error { return lk.Complete() },
	} {
		t.Run(op, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.faulty.Plan(op, fault.Conflict, fault.Conflict, fault.Conflict)
				lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.Heartbeat(9 * time.Second)}), event("e1"))
				expect.OK(t, end(lk))
				if n := f.faulty.Requests(op); n != 4 {
					t.Errorf("%d requests, want 4", n)
				}
			})
		})
	}
}

// panicsOnRelease returns a store whose Settle panics.
func panicsOnRelease() driver.Store {
	return fault.Hooks{Store: memstore.New(), OnSettle: func(context.Context, *driver.Settlement) (driver.Row, bool, error) { panic("store") }}
}

// TestStoreThatPanics shows that the panic reaches the caller, and that the
// deferred release does not wait for the completion that panicked.
func TestStoreThatPanics(t *testing.T) { // F48
	synctest.Test(t, func(t *testing.T) {
		l := expect.Value(lock.New(panicsOnRelease(), &lock.Options{Logger: discard}))(t)
		defer func() {
			if p := recover(); p != "store" {
				t.Errorf("recovered %v, want the store's panic", p)
			}
		}()
		_ = l.Do(t.Context(), event("e1"), nothing)
	})
}

// TestLogValue: the digest of no name would look like a key, and a release
// would look like a completion.
func TestLogValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of   lock.Observation
		want []string
	}{
		"with a name": {lock.Observation{Outcome: lock.OutcomeRefused, Key: lock.Key{Name: "n"}}, []string{"key"}},
		"without":     {lock.Observation{Outcome: lock.OutcomeRefused}, nil},
		"completed":   {lock.Observation{Outcome: lock.OutcomeReleased, Key: lock.Key{Name: "n"}, Completed: true}, []string{"key", "completed"}},
		"released":    {lock.Observation{Outcome: lock.OutcomeReleased, Key: lock.Key{Name: "n"}}, []string{"key"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, a := range c.of.LogValue().Group() {
				got = append(got, a.Key)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("attributes %v, want %v", got, c.want)
			}
		})
	}
}

// TestCompleteAfterStorePanicked shows that a completion that panicked does not
// count as one.
func TestCompleteAfterStorePanicked(t *testing.T) { // F48
	synctest.Test(t, func(t *testing.T) {
		l := expect.Value(lock.New(panicsOnRelease(), &lock.Options{Lease: lock.FixedLease(time.Minute), Logger: discard}))(t)
		lk := expect.Value(l.Acquire(t.Context(), event("e1")))(t)
		func() {
			defer func() { _ = recover() }()
			_ = lk.Complete()
		}()
		if lk.Complete() == nil {
			t.Error("the second Complete reports success, although the first one panicked")
		}
	})
}

// TestFailedCompletionReportsItselfOnly shows that nothing is reported as
// dropped or forgotten if the event could not be completed.
func TestFailedCompletionReportsItselfOnly(t *testing.T) { // F7
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{RememberEvents: 1, Lease: lock.FixedLease(time.Minute)})
		complete(t, l, ids(0, 30)...)
		f.outcomes()
		lk := f.mustAcquire(l, event(id(30)))
		f.faulty.Always(fault.Release, fault.Deny)
		if err := lk.CompleteWith(lock.Completion{Result: make([]byte, 400<<10)}); !isStoreError(err) {
			t.Fatal(err)
		}
		f.wantOutcomes(lock.OutcomeAcquired, lock.OutcomeCompleteFailed)
	})
}

// TestObservations shows what the observations of some outcomes hold.
func TestObservations(t *testing.T) { // F30
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		named := func(name string, o lock.Options) *lock.Locker {
			o.Holder = func(context.Context) string { return name }
			return f.locker(o)
		}
		last := func(outcome lock.Outcome) lock.Observation {
			t.Helper()
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, o := range slices.Backward(f.observed) {
				if o.Outcome == outcome {
					return o
				}
			}
			t.Errorf("no %s", outcome)
			return lock.Observation{}
		}
		dead := f.mustAcquire(named("dead", lock.Options{Lease: lock.FixedLease(3 * time.Second)}), event("e1"))
		dead.Kill()
		time.Sleep(4 * time.Second)
		lk := f.mustAcquire(named("heir", lock.Options{Lease: lock.FixedLease(time.Minute)}), event("e1"))
		if o := last(lock.OutcomeTakenOver); o.Holder != "dead" {
			t.Errorf("taken over from %q, want the dead holder", o.Holder)
		}
		if _, err := named("waiter", lock.Options{MaxWait: time.Second}).Acquire(t.Context(), event("e1")); !isHeld(err) {
			t.Fatal(err)
		}
		if o := last(lock.OutcomeHeld); o.Holder != "heir" || o.Err == nil || o.Requests == 0 || o.Waited != time.Second || !o.Began.Equal(time.Now().Add(-o.Duration)) {
			t.Errorf("the held name is reported as %+v", o)
		}
		time.Sleep(10 * time.Second)
		f.faulty.Always(fault.Release, fault.Deny)
		if err := lk.Complete(); err == nil {
			t.Fatal("completed")
		}
		if o := last(lock.OutcomeCompleteFailed); o.Completed || o.HeldFor < 10*time.Second || o.Duration > time.Second {
			t.Errorf("the failed completion is reported as %+v", o)
		}
	})
}

// TestForgottenIsReportedOnce shows that only one observation of a completion
// holds how many events it made forget, so that a sum over all is right.
func TestForgottenIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		complete(t, f.locker(lock.Options{RememberEvents: 1, Lease: lock.FixedLease(time.Minute)}), ids(0, 40)...)
		for _, o := range f.observed {
			if (o.Outcome == lock.OutcomeForgotten) != (o.Forgotten > 0) {
				t.Errorf("%s holds %d forgotten events", o.Outcome, o.Forgotten)
			}
		}
	})
}
