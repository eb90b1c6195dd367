package simulation

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// drift is by how much the wall clock and the timers of a process may differ
// during a lease.
const drift = 10 * time.Millisecond

// lease is what an invocation was told about a lease.
type lease struct {
	until         time.Time // as confirmed last, by the clock of the process
	asked         time.Time // the latest end that the process has asked for
	interruptions int64     // of the process, before the lease was asked for
	ended         bool      // by a settlement, as the store said
	renewing      bool      // a renewal was sent and none granted since
}

// dated returns how many interruptions of the process there were when the claim
// with that date was sent first. It keeps the date when it is repeated.
func (sim *simulation) dated(inv *invocation, interruptions int64, date time.Time) int64 {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	if first, ok := inv.dates[date]; ok {
		return first
	}
	inv.dates[date] = interruptions
	return interruptions
}

// granted notes the answer to a claim that was sent after that many
// interruptions.
func (sim *simulation) granted(inv *invocation, interruptions int64, c *driver.Claim, a *answer) {
	if a.err != nil || !a.ok && a.row.Token != c.Token {
		return
	}
	until := c.Until
	if !a.row.Until.IsZero() && a.row.Until.Before(until) {
		until = a.row.Until // of an earlier copy
	}
	sim.mu.Lock()
	defer sim.mu.Unlock()
	inv.leases[ownership{c.Name, c.Token}] = &lease{until: until, asked: until, interruptions: interruptions}
}

// renews notes that a renewal is sent.
func (sim *simulation) renews(inv *invocation, o ownership) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	if of := inv.leases[o]; of != nil {
		of.renewing = true
	}
}

// isRenewing reports whether a renewal under key was sent and none granted
// since.
func (sim *simulation) isRenewing(inv *invocation, key lock.Key) bool {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	for o, of := range inv.leases {
		if of.renewing && strings.HasSuffix(o.name, key.Name) {
			return true
		}
	}
	return false
}

// renewed notes the answer to a renewal.
func (sim *simulation) renewed(inv *invocation, r *driver.Renewal, a *answer) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	o := ownership{r.Name, r.Token}
	of := inv.leases[o]
	if r.Until.After(of.asked) {
		of.asked = r.Until
	}
	if a.err != nil {
		return
	}
	of.renewing = of.renewing && !a.ok
	switch {
	case a.ok && r.Until.After(of.until):
		of.until = r.Until
	case !a.ok && a.row.Token == r.Token && a.row.Until.After(of.until) && !a.row.Until.After(of.asked): // by its own clock
		of.until = a.row.Until
	case !a.ok:
		of.ended = sim.owners[o].settlements > 0
	}
}

// unsettled notes that the store has refused a settlement.
func (sim *simulation) unsettled(inv *invocation, o ownership) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	if of := inv.leases[o]; of != nil {
		of.ended = sim.owners[o].settlements > 1
	}
}

// lost checks that a lock is reported as lost for a reason: its process was
// frozen or its clock set, its end came near before a renewal was answered, an
// earlier settlement ended it, or its row went back. Nobody can take it over
// before that, except where clocks differ by more than Grace.
func (sim *simulation) lost(inv *invocation, err error) {
	var lost *lock.LostError
	if inv == nil || inv.p.isDead() || !errors.As(err, &lost) || sim.c.beyond() {
		return
	}
	near, interruptions := clock.Wall(inv.p.clock).Add(lock.DefaultGrace+drift), inv.p.interruptions.Load()
	sim.mu.Lock()
	defer sim.mu.Unlock()
	known := false
	for o, of := range inv.leases {
		if !strings.HasSuffix(o.name, lost.Key.Name) {
			continue
		}
		if known = true; sim.owners[o].forgotten || of.ended || of.interruptions != interruptions || !near.Before(of.until) {
			return
		}
	}
	if known {
		sim.fail("without a reason: %v", err)
	}
}

// endsForAReason calls lost if ctx, under which the invocation works, ends. It
// does not once stop was called.
func (sim *simulation) endsForAReason(ctx context.Context, inv *invocation) (stop func() bool) {
	return inv.p.onEnd(ctx, "work ended", func() { sim.lost(inv, context.Cause(ctx)) })
}
