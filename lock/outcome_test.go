package lock_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

var discard = slog.New(slog.DiscardHandler)

// TestCompleteAndReleaseTwice: the first call counts, and later ones tell what came of it.
func TestCompleteAndReleaseTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		l := r.locker(lock.Options{Lease: lock.FixedLease(10 * time.Second)})
		lk := r.mustAcquire(l, event("e1"))
		if err := lk.Release(); err != nil {
			t.Fatal(err)
		}
		if err := lk.Complete(nil); !errors.Is(err, lock.ErrReleased) {
			t.Errorf("Complete after Release: %v, want ErrReleased: nothing is recorded", err)
		}
		lk = r.mustAcquire(l, event("e1"))
		r.store.Always(locktest.Release, locktest.Deny)
		first := lk.Complete(nil)
		if !isStoreError(first) {
			t.Fatalf("denied: %v", first)
		}
		r.store.Always(locktest.Release, locktest.None)
		if err := lk.Complete(nil); err != first {
			t.Errorf("Complete after a failed Complete: %v, want %v", err, first)
		}
		if err := lk.Release(); err != first {
			t.Errorf("Release after a failed Complete: %v, want %v", err, first)
		}
		if _, err := l.Acquire(t.Context(), event("e1")); !isHeld(err) {
			t.Errorf("an event that was not recorded: %v, want held until its lease ends", err)
		}
		time.Sleep(11 * time.Second)
		lk = r.mustAcquire(l, event("e1"))
		for range 3 {
			if err := lk.Complete(nil); err != nil {
				t.Error(err)
			}
		}
	})
}

// usurped loses a release, and gives the row to somebody else meanwhile.
type usurped struct {
	*memstore.Store
	begun bool
}

func (u *usurped) Release(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	if u.begun {
		return u.Store.Release(ctx, s)
	}
	u.begun = true
	if _, _, err := u.Store.Release(ctx, &driver.Settlement{Name: s.Name, Token: s.Token}); err != nil { // by hand
		return driver.Row{}, false, err
	}
	now := time.Now().Add(time.Second)
	_, _, err := u.Store.Acquire(ctx, &driver.Claim{Name: s.Name, Token: "other", Now: now, Stamp: now, Until: now.Add(time.Minute)})
	return driver.Row{}, false, errors.Join(err, errors.New("connection lost"))
}

// TestUnansweredCompletionThenTakeover: an attempt had no answer, and the next one finds the
// row in other hands, without what it meant to record.
func TestUnansweredCompletionThenTakeover(t *testing.T) { // F6, F21
	for name, key := range map[string]lock.Key{
		"event": event("e1"), "order": {Name: "resource", Order: "5"}, "both": {Name: "resource", Event: "e1", Order: "5"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.store.Store = &usurped{Store: memstore.New()}
				lk := r.mustAcquire(r.locker(lock.Options{}), key)
				r.kinds()
				if err := lk.Complete(nil); !errors.Is(err, lock.ErrLost) {
					t.Errorf("got %v, want lost: nothing is recorded", err)
				}
				r.want(lock.OutcomeLost)
			})
		})
	}
}

// TestLostAnswerOfOrderedCompletion: the order alone tells that the completion was recorded.
func TestLostAnswerOfOrderedCompletion(t *testing.T) { // F6
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		key := lock.Key{Name: "resource", Order: "5"}
		l := r.locker(lock.Options{})
		lk := r.mustAcquire(l, key)
		r.store.Plan(locktest.Release, locktest.ApplyThenDrop)
		if err := lk.Complete(nil); err != nil {
			t.Errorf("got %v, although it was recorded", err)
		}
		if _, err := l.Acquire(t.Context(), key); !errors.Is(err, lock.ErrCompleted) {
			t.Errorf("the same order again: %v", err)
		}
	})
}

// sentinel reports the same value every time, as a store may.
type sentinel struct {
	driver.Store
	err *driver.Error
}

func (s sentinel) Acquire(context.Context, *driver.Claim) (driver.Row, bool, error) {
	return driver.Row{}, false, s.err
}

// TestStoreErrorsAreCopied: the engine adds to what a store reports, and the store's own
// value stays as it was. The race detector sees the rest.
func TestStoreErrorsAreCopied(t *testing.T) {
	t.Parallel()
	s := sentinel{memstore.New(), &driver.Error{Store: "s", Rejected: true, Err: errors.New("no")}}
	before := *s.err
	l, err := lock.New(s, &lock.Options{Logger: discard})
	if err != nil {
		t.Fatal(err)
	}
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
	if *s.err != before {
		t.Errorf("the store's own error became %+v", s.err)
	}
}

// TestConflictsAreRetried: a table with multi-Region strong consistency answers a
// conflict while another Region writes the row.
func TestConflictsAreRetried(t *testing.T) { // F9, F45
	for op, end := range map[locktest.Op]func(*lock.Lock) error{
		locktest.Acquire: (*lock.Lock).Release,
		locktest.Renew:   func(lk *lock.Lock) error { time.Sleep(4 * time.Second); return lk.Release() },
		locktest.Release: func(lk *lock.Lock) error { return lk.Complete(nil) },
	} {
		t.Run(string(op), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.store.Plan(op, locktest.Conflict, locktest.Conflict, locktest.Conflict)
				lk := r.mustAcquire(r.locker(lock.Options{Lease: lock.Heartbeat(9 * time.Second)}), event("e1"))
				if err := end(lk); err != nil {
					t.Error(err)
				}
				if n := r.store.Requests(op); n != 4 {
					t.Errorf("%d requests, want 4", n)
				}
			})
		})
	}
}

// panics where it should release.
type panics struct{ driver.Store }

func (panics) Release(context.Context, *driver.Settlement) (driver.Row, bool, error) { panic("store") }

// TestStoreThatPanics: the panic reaches the caller, and the deferred release does not wait
// for an end that never comes.
func TestStoreThatPanics(t *testing.T) { // F48
	synctest.Test(t, func(t *testing.T) {
		l, err := lock.New(panics{memstore.New()}, &lock.Options{Logger: discard})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if p := recover(); p != "store" {
				t.Errorf("recovered %v, want the store's panic", p)
			}
		}()
		_ = l.Do(t.Context(), event("e1"), nothing)
	})
}
