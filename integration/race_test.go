package integration_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

const (
	writers   = 32
	racedRows = 40
)

// TestRace lets 32 stores, each with its own connections, claim a name at the
// same time: a new one, one that is free, and one whose holder is dead. Each
// time exactly one gets it.
func TestRace(t *testing.T) {
	inEach(t, func(t *testing.T, b backend, p place) {
		r := &race{splits: b.splits, now: time.Now(), clock: newMovedClock(), stores: make([]driver.Store, writers)}
		for i := range r.stores {
			w := newWire(0)
			if b.ownClock {
				w.clock = r.clock
			}
			r.stores[i] = p.store(t, w)
		}
		var fences [racedRows]int64
		run := rand.Text()
		for _, when := range []string{"new", "free", "dead"} {
			r.now = r.now.Add(2 * raceLease)
			r.clock.advance(2 * raceLease)
			rows := racedRows
			if testing.Short() && when != "new" {
				rows /= 5
			}
			for i := range rows {
				name := fmt.Sprint(run, "/", i)
				winner := r.run(t, name, when)
				if winner.Fence <= fences[i] {
					t.Errorf("%s name %d: fence %d after %d", when, i, winner.Fence, fences[i])
				}
				fences[i] = winner.Fence
				if when == "new" { // so that it is free in the next round
					_, ok, err := r.stores[0].Settle(t.Context(), &driver.Settlement{Name: name, Token: winner.Token, DeleteAfter: winner.DeleteAfter})
					if !ok || err != nil {
						t.Fatalf("release: %v, %v", ok, err)
					}
				}
			}
		}
	})
}

// TestIgnoredConditions shows what would happen where a server ignores the
// conditions of writes: the store does not use it.
func TestIgnoredConditions(t *testing.T) { // F52
	p := onS3(servers.VersityGWNoMeta)(t)
	locker := newLocker(t, p.store(t, nil), lock.Options{Lease: lock.FixedLease(time.Minute)})
	_, err := locker.Acquire(t.Context(), lock.Key{Name: "ignored"})
	if !errors.As(err, new(*lock.ConfigError)) || !strings.Contains(err.Error(), "does not check the condition") {
		t.Errorf("got %v, want a *lock.ConfigError", err)
	}
}

const raceLease = time.Minute

type race struct {
	splits bool
	stores []driver.Store
	now    time.Time
	clock  *movedClock
}

// claim asks once. Only where claims may split the servers does it ask again,
// as package lock does, until somebody holds the name.
func (r *race) claim(ctx context.Context, s driver.Store, c *driver.Claim) (driver.Row, bool, error) {
	for {
		row, ok, err := s.Acquire(ctx, c)
		var e *driver.Error
		if failed := errors.As(err, &e) && !e.Lasting; !r.splits || ok || !failed && row.Judge(c) == driver.Held {
			return row, ok, err
		}
		if row.Stamp.After(c.Stamp) {
			c.Stamp = row.Stamp
		}
		c.Stamp = c.Stamp.Add(time.Microsecond)
		_ = delayFor(ctx, mathrand.N(50*time.Millisecond)) // so that they do not meet again
	}
}

// run returns the row of the one store that got the name.
func (r *race) run(t *testing.T, name, when string) driver.Row {
	t.Helper()
	var start, done sync.WaitGroup
	var winners, lost atomic.Int32
	var row atomic.Pointer[driver.Row]
	start.Add(1)
	for i, s := range r.stores {
		c := driver.Claim{
			Name: name, Token: rand.Text(), Holder: fmt.Sprint(i), Now: r.now, Stamp: r.now,
			Until: r.now.Add(raceLease), DeleteAfter: r.now.Add(time.Hour),
		}
		done.Go(func() {
			start.Wait()
			got, ok, err := r.claim(t.Context(), s, &c)
			var e *driver.Error
			switch {
			case ok:
				winners.Add(1)
				row.Store(&got)
			case err == nil, errors.As(err, &e) && e.Unapplied && e.Conflict:
				lost.Add(1)
			default:
				t.Errorf("%s name: %v", when, err)
			}
		})
	}
	start.Done()
	done.Wait()
	if winners.Load() != 1 || lost.Load() != writers-1 {
		t.Fatalf("%s name: %d of %d got it, and %d were refused", when, winners.Load(), writers, lost.Load())
	}
	return *row.Load()
}
