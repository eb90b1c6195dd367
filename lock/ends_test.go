package lock_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// TestOrderOfStoredNames shows that names are acquired in the order in which
// they are stored, in which a hash may come before what it stands for.
func TestOrderOfStoredNames(t *testing.T) { // F34
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)})
		all := f.mustAcquireAll(l, lock.Key{Name: "\xff"}, lock.Key{Name: "z"}, lock.Key{Name: "a"})
		var names []string
		for _, lease := range lock.Leases(all.Context()) {
			names = append(names, lease.Key.Name)
		}
		if want := []string{"z", "\xff", "a"}; !slices.Equal(names, want) { // the innermost first; "\xff" is stored as "sha256:…"
			t.Errorf("leases of %q, want %q", names, want)
		}
		_ = all.Release()
	})
}

// TestUnansweredTransactionOfAMutex shows that the failure of a transaction is
// reported as one of a completion, whatever the key has.
func TestUnansweredTransactionOfAMutex(t *testing.T) { // F7
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)}), resource)
		f.outcomes()
		if err := transact(t, f, lk, fails(errors.New("lost"))); !isStoreError(err) {
			t.Errorf("error %v", err)
		}
		f.wantOutcomes(lock.OutcomeCompleteFailed)
	})
}

// TestSetOfMutexesEndsSoon shows that the end of locks without events takes no
// longer than a release may take.
func TestSetOfMutexesEndsSoon(t *testing.T) { // F11
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		all := f.mustAcquireAll(f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)}), resource)
		f.faulty.Always(fault.Release, fault.Hang)
		began := time.Now()
		if err := all.Complete(); !isStoreError(err) {
			t.Errorf("Complete: %v", err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v, want at most 2 s", took)
		}
	})
}

// TestPayloadWithoutEvent shows that a payload means nothing without an Event.
func TestPayloadWithoutEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)})
		f.mustAcquire(l, lock.Key{Name: "resource", Payload: "a"})
		if _, err := l.Acquire(t.Context(), lock.Key{Name: "resource", Payload: "b"}); !isHeld(err) {
			t.Errorf("another payload: %v, want held", err)
		}
	})
}

// TestManyEndsAtOnce ends a lock from several goroutines while renewals fail.
func TestManyEndsAtOnce(t *testing.T) { // F17
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.Heartbeat(4 * time.Second)}), event("e1"))
			f.faulty.Always(fault.Renew, fault.Deny)
			var wg sync.WaitGroup
			for i, end := range []func(){
				func() {
					_ = transact(t, f, lk, fails(&driver.Error{Lasting: true, Answered: true, Unapplied: true, Err: errors.New("declined")}))
				},
				func() { _ = transact(t, f, lk, f.faulty.Settle) },
				func() { _ = lk.Release() }, func() { _ = lk.Complete() },
			} {
				wg.Go(func() {
					time.Sleep(time.Duration(995+i) * time.Millisecond) // the first renewal is sent after 1 s
					end()
				})
			}
			wg.Wait()
			if lk.Context().Err() == nil {
				t.Error("the context goes on")
			}
		})
	}
}
