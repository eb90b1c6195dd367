package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// freezing is a store in which somebody holds a name when it is claimed first.
// Meanwhile the process is frozen, with its timers.
type freezing struct {
	driver.Store
	name     string
	freeze   func()
	renewals int
}

func (s *freezing) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	if c.Name == s.name {
		s.name = ""
		s.freeze()
		return driver.Row{Token: "somebody", Stamp: c.Stamp.Add(-time.Second), Until: c.Until, Fence: 1}, false, nil
	}
	return s.Store.Acquire(ctx, c)
}

func (s *freezing) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	s.renewals++
	return s.Store.Renew(ctx, r)
}

// TestFrozenBeforeTheWork freezes a process that holds one name while it
// acquires the next one. The timers of the first lock are late then by as much,
// but the work begins only now, and must end with the first lease all the same.
func TestFrozenBeforeTheWork(t *testing.T) { // F15
	t.Parallel()
	const (
		lease  = 6 * time.Second
		frozen = 2 * time.Second
		end    = lease - lock.DefaultGrace // of the work, by the first lease
	)
	set := func(l onClock, ctx context.Context) (context.Context, func() error) {
		s, err := l.AcquireAll(ctx, lock.Key{Name: "a"}, lock.Key{Name: "b"})
		if err != nil {
			return nil, func() error { return err }
		}
		return s.Context(), s.Release
	}
	nested := func(l onClock, ctx context.Context) (context.Context, func() error) {
		outer, err := l.Acquire(ctx, lock.Key{Name: "a"})
		if err != nil {
			return nil, func() error { return err }
		}
		inner, err := l.Acquire(outer.Context(), lock.Key{Name: "b"})
		if err != nil {
			return nil, func() error { return err }
		}
		return inner.Context(), func() error { return errors.Join(inner.Release(), outer.Release()) }
	}
	for name, acquire := range map[string]func(onClock, context.Context) (context.Context, func() error){"a set": set, "a nested lock": nested} {
		for mode, leases := range map[string]lock.LeaseMode{"fixed": lock.FixedLease(lease), "heartbeat": lock.Heartbeat(lease)} {
			t.Run(name+", "+mode, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					store := &freezing{Store: memstore.New(), name: "/b"}
					l, err := lock.New(store, &lock.Options{Lease: leases, MaxWait: time.Second, Logger: discard})
					if err != nil {
						t.Fatal(err)
					}
					on := skewed(l, 0)
					store.freeze = func() { on.freeze(frozen) }
					began := time.Now()
					work, release := acquire(on, t.Context())
					if work == nil {
						t.Fatal(release())
					}
					synctest.Wait()
					if mode == "heartbeat" {
						if store.renewals != 1 {
							t.Errorf("%d renewals when the work begins, want the one that was due while the process was frozen", store.renewals)
						}
					} else {
						_ = clock.From(work).Sleep(work, time.Hour)
						if ended := time.Since(began); ended != end || !errors.Is(context.Cause(work), lock.ErrLost) {
							t.Errorf("the work ended after %v with %v, want %v", ended, context.Cause(work), end)
						}
					}
					if err := release(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// TestStuckRenewalAfterFreeze: the lease of the first name cannot be renewed
// any more, so the work ends before the lease does.
func TestStuckRenewalAfterFreeze(t *testing.T) { // F9, F15
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lease = 7 * time.Second
		store := &freezing{Store: memstore.New(), name: "/b"}
		l, err := lock.New(hungRenewals{store}, &lock.Options{Lease: lock.Heartbeat(lease), MaxWait: time.Second, Logger: discard})
		if err != nil {
			t.Fatal(err)
		}
		on := skewed(l, 0)
		store.freeze = func() { on.freeze(2900 * time.Millisecond) }
		began := time.Now()
		s, err := on.AcquireAll(t.Context(), lock.Key{Name: "a"}, lock.Key{Name: "b"})
		if err != nil {
			t.Fatal(err)
		}
		<-s.Context().Done()
		if ended := time.Since(began); ended > lease-lock.DefaultGrace {
			t.Errorf("the work ended after %v, want %v at the latest", ended, lease-lock.DefaultGrace)
		}
		_ = s.Release()
	})
}

// hungRenewals is a store that answers no renewal.
type hungRenewals struct{ driver.Store }

func (hungRenewals) Renew(ctx context.Context, _ *driver.Renewal) (driver.Row, bool, error) {
	<-ctx.Done()
	return driver.Row{}, false, &driver.Error{Store: "hung", Temporary: true, Err: ctx.Err()}
}

// TestFrozenBeyondTheLease freezes the process for so long that the lease of
// the outer lock is lost. No work begins under a lock that is lost, and the
// inner name is free.
func TestFrozenBeyondTheLease(t *testing.T) { // F15
	t.Parallel()
	for mode, leases := range map[string]lock.LeaseMode{"fixed": lock.FixedLease(6 * time.Second), "heartbeat": lock.Heartbeat(6 * time.Second)} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &freezing{Store: memstore.New(), name: "/b"}
				l, err := lock.New(store, &lock.Options{Lease: leases, MaxWait: time.Second, Logger: discard})
				if err != nil {
					t.Fatal(err)
				}
				on := skewed(l, 0)
				store.freeze = func() { on.freeze(5 * time.Second) }
				outer, err := on.Acquire(t.Context(), lock.Key{Name: "a"})
				if err != nil {
					t.Fatal(err)
				}
				_, err = on.Acquire(outer.Context(), lock.Key{Name: "b"})
				var lost *lock.LostError
				if !errors.As(err, &lost) || lost.Key.Name != "a" {
					t.Errorf("the inner lock: %v, want that the outer one is lost", err)
				}
				if row := readRow(t, store.Store, "/b"); row.Token != "" {
					t.Errorf("the inner name is held by %s", row.Token)
				}
				_ = outer.Release()
			})
		})
	}
}
