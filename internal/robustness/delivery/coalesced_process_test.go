package delivery_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// mergedProcess is a process and its connection to the store, until it dies.
type mergedProcess struct {
	*fault.Store
	m        *merged
	source   string
	batch    []*mergedChange
	places   map[string]int // in the batch: of what ran last of each group
	requests atomic.Int64
	dies     int64 // at that request; negative: it does not
	died     atomic.Pointer[time.Time]
}

func (p *mergedProcess) die() {
	now := time.Now()
	p.died.CompareAndSwap(nil, &now)
}

func (p *mergedProcess) isDead() bool { return p.died.Load() != nil }

// inOrder checks that no change runs after one that comes later in its group.
func (p *mergedProcess) inOrder(c *mergedChange) {
	place, group := slices.Index(p.batch, c), ""
	switch {
	case p.source == "SQS":
		return
	case p.m.byName && p.source != "FIFO" && p.source != "custom bus":
		group = c.name
	}
	if p.source == "Kafka" { // two partitions
		group += fmt.Sprint(place % 2)
	}
	if last := p.places[group]; place < last {
		p.m.t.Errorf("seed %d: %s runs after %s", p.m.seed, c.id, p.batch[last].id)
	}
	p.places[group] = place
}

// now is the time or, if that was before, when the process died.
func (p *mergedProcess) now() time.Time {
	if at := p.died.Load(); at != nil {
		return *at
	}
	return time.Now()
}

func (p *mergedProcess) send(request func() (driver.Row, bool, error)) (driver.Row, bool, error) {
	gone := gone()
	if p.isDead() {
		return driver.Row{}, false, gone
	}
	row, ok, err := request()
	if p.requests.Add(1)-1 == p.dies {
		p.die()
	}
	if p.isDead() {
		return driver.Row{}, false, gone
	}
	return row, ok, err
}

// Acquire implements [driver.Store].
func (p *mergedProcess) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	return p.send(func() (driver.Row, bool, error) { return p.Store.Acquire(ctx, c) })
}

// Renew implements [driver.Store].
func (p *mergedProcess) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	return p.send(func() (driver.Row, bool, error) { return p.Store.Renew(ctx, r) })
}

// Settle implements [driver.Store].
func (p *mergedProcess) Settle(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	return p.send(func() (driver.Row, bool, error) { return p.Store.Settle(ctx, s) })
}

// Mark implements [driver.Coalescer].
func (p *mergedProcess) Mark(ctx context.Context, k *driver.Mark) (driver.Row, bool, error) {
	return p.send(func() (driver.Row, bool, error) { return p.Store.Mark(ctx, k) })
}
