package lock_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/lawful"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// fixture is a store that fails on purpose, and what lockers observed on it.
type fixture struct {
	t        *testing.T
	faulty   *fault.Scripted
	mu       sync.Mutex
	observed []lock.Observation
}

func newFixture(t *testing.T) *fixture {
	return &fixture{t: t, faulty: fault.NewScripted(memstore.New())}
}

func (f *fixture) locker(o lock.Options) *lock.Locker {
	f.t.Helper()
	o.Logger = discard
	observe := o.Observe
	o.Observe = func(ctx context.Context, o lock.Observation) {
		if err := lawful.Check(o); err != nil {
			f.t.Error(err)
		}
		f.mu.Lock()
		f.observed = append(f.observed, o)
		f.mu.Unlock()
		if observe != nil {
			observe(ctx, o)
		}
	}
	l, err := lock.New(f.faulty, &o)
	if err != nil {
		f.t.Fatal(err)
	}
	return l
}

// outcomes returns what was observed since the last call.
func (f *fixture) outcomes() []lock.Outcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []lock.Outcome
	for _, o := range f.observed {
		all = append(all, o.Outcome)
	}
	f.observed = nil
	return all
}

func (f *fixture) wantOutcomes(want ...lock.Outcome) {
	f.t.Helper()
	if got := f.outcomes(); !slices.Equal(got, want) {
		f.t.Errorf("observed %q, want %q", got, want)
	}
}

func (f *fixture) mustAcquire(l locker, key lock.Key) *lock.Lock {
	f.t.Helper()
	lk, err := l.Acquire(f.t.Context(), key)
	if err != nil {
		f.t.Fatalf("acquire: %v", err)
	}
	return lk
}

// wantFree ends the faults and fails the test unless the resource can be
// acquired immediately.
func (f *fixture) wantFree(when string) {
	f.t.Helper()
	f.faulty.Always(fault.Acquire, fault.None)
	f.faulty.Always(fault.Release, fault.None)
	lk, err := f.locker(lock.Options{}).Acquire(f.t.Context(), resource)
	if err != nil {
		f.t.Errorf("%s: %v, although nobody holds the name", when, err)
		return
	}
	_ = lk.Release()
}

// row returns the row of the resource.
func (f *fixture) row() driver.Row {
	f.t.Helper()
	return readRow(f.t, f.faulty.Store, "/resource")
}

// releaseByHand releases the resource without its owner.
func (f *fixture) releaseByHand() {
	f.t.Helper()
	s := &driver.Settlement{Name: "/resource", Token: f.row().Token}
	if _, ok, err := f.faulty.Store.Settle(f.t.Context(), s); !ok || err != nil {
		f.t.Fatal(ok, err)
	}
}

// readRow returns the row of name, by a claim that every row refuses.
func readRow(t *testing.T, store driver.Store, name string) driver.Row {
	t.Helper()
	row, ok, err := store.Acquire(context.Background(), &driver.Claim{Name: name, Token: "reader"})
	if ok || err != nil {
		t.Fatalf("reading the row of %s: granted %v, error %v", name, ok, err)
	}
	return row
}

var resource = lock.Key{Name: "resource"}

func event(id string) lock.Key { return lock.Key{Name: "resource", Event: id} }

// untilDeadline is how locks are set up in classic Lambda.
var untilDeadline = lock.Options{Lease: lock.UntilDeadline()}

var discard = slog.New(slog.DiscardHandler)

func nothing(context.Context) error { return nil }

func isHeld(err error) bool       { return errors.Is(err, lock.ErrHeld) }
func isLost(err error) bool       { return errors.Is(err, lock.ErrLost) }
func isCompleted(err error) bool  { return errors.Is(err, lock.ErrCompleted) }
func isStoreError(err error) bool { return errors.As(err, new(*lock.StoreError)) }
