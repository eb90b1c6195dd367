package lock_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/simclock"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestClockIsSetBackDuringAHold shows that renewals move the end of the lease
// while the holder's wall clock is set, and that work ends in time if they
// fail.
func TestClockIsSetBackDuringAHold(t *testing.T) { // F14, F58
	steps := map[string][]time.Duration{
		"back": {-time.Hour}, "back by a lease": {-14 * time.Second}, "back twice": {-time.Hour, -24 * time.Hour},
		"forward a little, and back": {time.Second, -time.Hour},
	}
	for name, steps := range steps {
		for store, open := range map[string]func() driver.Store{
			"server's clock":   func() driver.Store { return newServerClock(time.Now) },
			"claimants' clock": func() driver.Store { return memstore.New() },
		} {
			for _, fails := range []bool{false, true} {
				t.Run(fmt.Sprint(name, ", ", store, ", renewals fail: ", fails), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						f := newFixture(t)
						f.faulty.Store = open()
						holder := onClock{f.locker(lock.Options{Lease: lock.Heartbeat(14 * time.Second)}), simclock.New(0, 0)}
						lk := expect.Value(holder.Acquire(t.Context(), resource))(t)
						for _, d := range steps {
							time.Sleep(5 * time.Second)
							holder.clock.Step(d)
						}
						if fails {
							f.faulty.Always(fault.Renew, fault.DropBefore)
						}
						for range 120 {
							time.Sleep(500 * time.Millisecond)
							other, err := f.locker(lock.Options{}).Acquire(t.Context(), resource)
							if err == nil && lk.Context().Err() == nil {
								t.Error("two have the lock")
								_ = other.Release()
								break
							}
							if err == nil {
								_ = other.Release()
							}
						}
						if ended := lk.Context().Err() != nil; ended != fails && !t.Failed() {
							t.Errorf("the work has ended: %v", ended)
						}
						if lost := slices.Contains(f.outcomes(), lock.OutcomeLost); lost != fails {
							t.Errorf("the heartbeat has noticed that the lease is lost: %v", lost)
						}
						_ = lk.Release()
					})
				})
			}
		}
	}
}

// TestClockIsSetBackDuringAClaim shows that work ends before its lease does,
// also if the holder's wall clock was set back after it had dated the claim.
func TestClockIsSetBackDuringAClaim(t *testing.T) { // F14, F58
	for name, mode := range map[string]lock.LeaseMode{"fixed": lock.FixedLease(9 * time.Second), "heartbeat": lock.Heartbeat(9 * time.Second)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.faulty.Always(fault.Renew, fault.DropBefore)
				holder := skewed(f.locker(lock.Options{Lease: mode}), 0)
				store := f.faulty.Store
				f.faulty.Store = fault.Hooks{Store: store, OnAcquire: func(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
					holder.clock.Step(-time.Hour)
					return store.Acquire(ctx, c)
				}}
				began := time.Now()
				lk := expect.Value(holder.Acquire(t.Context(), resource))(t)
				<-lk.Context().Done()
				if worked := time.Since(began); worked != 7*time.Second {
					t.Errorf("the work ended after %v, want 7s: its lease less Grace", worked)
				}
				_ = lk.Release()
			})
		})
	}
}
