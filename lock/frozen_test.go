package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// freezing is a store in which somebody holds the name b when it is claimed
// first. Meanwhile the process is frozen, with its timers.
type freezing struct {
	driver.Store
	freeze   func()
	frozen   bool // it was
	hangs    bool // no renewal is answered
	renewals int  // of the name a
}

// newFreezing returns the Locker of a process that will be frozen for d.
func newFreezing(t *testing.T, leases lock.LeaseMode, d time.Duration) (onClock, *freezing) {
	t.Helper()
	s := &freezing{Store: memstore.New()}
	l := expect.Value(lock.New(s, &lock.Options{Lease: leases, MaxWait: time.Second, Logger: discard}))(t)
	on := skewed(l, 0)
	s.freeze = func() { on.freeze(d) }
	return on, s
}

func (s *freezing) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	if c.Name == "/b" && !s.frozen {
		s.frozen = true
		s.freeze()
		return driver.Row{Token: "somebody", Stamp: c.Stamp.Add(-time.Second), Until: c.Until, Fence: 1}, false, nil
	}
	return s.Store.Acquire(ctx, c)
}

func (s *freezing) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	if r.Name == "/a" {
		s.renewals++
	}
	if s.hangs {
		<-ctx.Done()
		return driver.Row{}, false, &driver.Error{Store: "freezing", Err: ctx.Err()}
	}
	return s.Store.Renew(ctx, r)
}

var keyA, keyB = lock.Key{Name: "a"}, lock.Key{Name: "b"}

// inside acquires keyA and then keyB, in several ways, and returns the context
// of the work and how to release them.
var inside = map[string]func(context.Context, onClock) (work context.Context, release func() error, err error){
	"a set": func(ctx context.Context, l onClock) (context.Context, func() error, error) {
		s, err := l.AcquireAll(ctx, keyA, keyB)
		if err != nil {
			return nil, nil, err
		}
		return s.Context(), s.Release, nil
	},
	"a nested lock": func(ctx context.Context, l onClock) (context.Context, func() error, error) {
		outer, err := l.Acquire(ctx, keyA)
		if err != nil {
			return nil, nil, err
		}
		inner, err := l.Acquire(outer.Context(), keyB)
		if err != nil {
			return nil, nil, errors.Join(err, outer.Release())
		}
		return inner.Context(), func() error { return errors.Join(inner.Release(), outer.Release()) }, nil
	},
	"a lock between them": func(ctx context.Context, l onClock) (context.Context, func() error, error) {
		s, err := l.AcquireAll(ctx, keyA, lock.Key{Name: "aa"}, keyB)
		if err != nil {
			return nil, nil, err
		}
		return s.Context(), s.Release, nil
	},
}

// TestFrozenBeforeTheWork freezes a process that holds one name while it
// acquires the next one. The timers of the first lock are late then by as much,
// but the work begins only now. It must end with the first lease all the same,
// and a renewal that was due meanwhile is sent immediately.
func TestFrozenBeforeTheWork(t *testing.T) { // F15
	t.Parallel()
	const lease, frozen = 6 * time.Second, 2 * time.Second
	for name, acquire := range inside {
		t.Run(name+", fixed", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				on, _ := newFreezing(t, lock.FixedLease(lease), frozen)
				began := time.Now()
				work, release, err := acquire(t.Context(), on)
				if err != nil {
					t.Fatal(err)
				}
				_ = clock.From(work).Sleep(work, time.Hour)
				if ended, want := time.Since(began), lease-lock.DefaultGrace; ended != want || !errors.Is(context.Cause(work), lock.ErrLost) {
					t.Errorf("the work ended after %v with %v, want %v", ended, context.Cause(work), want)
				}
				expect.OK(t, release())
			})
		})
		t.Run(name+", heartbeat", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				on, store := newFreezing(t, lock.Heartbeat(lease), frozen)
				_, release, err := acquire(t.Context(), on)
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if store.renewals != 1 {
					t.Errorf("%d renewals when the work begins, want 1", store.renewals)
				}
				expect.OK(t, release())
			})
		})
	}
}

// TestStuckRenewalAfterFreeze: the lease of the first name cannot be renewed
// any more, so the work ends before the lease does.
func TestStuckRenewalAfterFreeze(t *testing.T) { // F9, F15
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lease = 7 * time.Second
		on, store := newFreezing(t, lock.Heartbeat(lease), 2900*time.Millisecond)
		store.hangs = true
		began := time.Now()
		s := expect.Value(on.AcquireAll(t.Context(), keyA, keyB))(t)
		<-s.Context().Done()
		if ended := time.Since(began); ended > lease-lock.DefaultGrace {
			t.Errorf("the work ended after %v, want %v at the latest", ended, lease-lock.DefaultGrace)
		}
		_ = s.Release()
	})
}

// TestFrozenBeyondTheLease freezes the process for so long that the lease of
// the first lock is lost. No work begins under a lock that is lost, and the
// second name is free.
func TestFrozenBeyondTheLease(t *testing.T) { // F15
	t.Parallel()
	for mode, leases := range map[string]lock.LeaseMode{"fixed": lock.FixedLease(6 * time.Second), "heartbeat": lock.Heartbeat(6 * time.Second)} {
		for name, acquire := range inside {
			t.Run(name+", "+mode, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					on, store := newFreezing(t, leases, 5*time.Second)
					_, release, err := acquire(t.Context(), on)
					if err == nil {
						err = errors.Join(errors.New("the work begins"), release())
					}
					var lost *lock.LostError
					if !errors.As(err, &lost) || lost.Key == keyB {
						t.Errorf("%v, want that a lock around it is lost", err)
					}
					if row := readRow(t, store.Store, "/b"); row.Token != "" {
						t.Errorf("the second name is held by %s", row.Token)
					}
				})
			})
		}
	}
}
