package locktest_test

import (
	"context"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// limited is a store that judges leases by its own clock, has no fence, and
// does not return the row that refused.
type limited struct {
	rows  *memstore.Store
	clock time.Time
}

func (s *limited) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	claim := *c
	claim.Now = s.clock
	return hide(s.rows.Acquire(ctx, &claim))
}

func (s *limited) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	if row, err := s.rows.Read(ctx, r.Name); err != nil || row.Until.Before(s.clock) {
		return driver.Row{Untold: err == nil}, false, err
	}
	return hide(s.rows.Renew(ctx, r))
}

func (s *limited) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	return hide(s.rows.Settle(ctx, t))
}

func hide(row driver.Row, ok bool, err error) (driver.Row, bool, error) {
	if !ok {
		return driver.Row{Untold: err == nil}, false, err
	}
	row.Fence = 0
	return row, true, err
}

// TestRunWithLimits runs the suite against a store with every limit that a
// harness can declare.
func TestRunWithLimits(t *testing.T) {
	var store *limited
	locktest.Run(t, locktest.Harness{
		Open: func(*testing.T) driver.Store {
			store = &limited{memstore.New(), time.Now()}
			return store
		},
		Advance:  func(d time.Duration) { store.clock = store.clock.Add(d) },
		NoDetail: true,
		NoFence:  true,
	})
}
