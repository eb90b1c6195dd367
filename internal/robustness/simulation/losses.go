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

// tenure is what an invocation was told about a lease.
type tenure struct {
	until  time.Time // as confirmed last, by the clock of the process
	asked  time.Time // the latest end that the process has asked for
	upsets int64     // of the process, before the lease was asked for
	ended  bool      // by a settlement, as the store said
}

// dated returns how many upsets of the process there were when the claim or the
// renewal with that date was sent first. It keeps the date when it is repeated.
func (w *world) dated(inv *invocation, upsets int64, date time.Time) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if first, ok := inv.dates[date]; ok {
		return first
	}
	inv.dates[date] = upsets
	return upsets
}

// granted notes the answer to a claim that was sent after that many upsets.
func (w *world) granted(inv *invocation, upsets int64, c *driver.Claim, a *answer) {
	if a.err != nil || !a.ok && a.row.Token != c.Token {
		return
	}
	until := c.Until
	if !a.row.Until.IsZero() && a.row.Until.Before(until) {
		until = a.row.Until // of an earlier copy
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	inv.tenures[grip{c.Name, c.Token}] = &tenure{until: until, asked: until, upsets: upsets}
}

// renewed notes the answer to a renewal that was sent after that many upsets.
func (w *world) renewed(inv *invocation, upsets int64, r *driver.Renewal, a *answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := grip{r.Name, r.Token}
	of := inv.tenures[g]
	if of != nil && r.Until.After(of.asked) {
		of.asked = r.Until
	}
	if a.err != nil {
		return
	}
	if of == nil { // it is resumed
		of = &tenure{upsets: upsets, asked: r.Until}
		inv.tenures[g] = of
		inv.freezes = a.freezes
	}
	switch {
	case a.ok && r.Until.After(of.until):
		of.until = r.Until
	case !a.ok && a.row.Token == r.Token && a.row.Until.After(of.until) && !a.row.Until.After(of.asked): // by its own clock
		of.until = a.row.Until
	case !a.ok:
		of.ended = w.grips[g].settlements > 0
	}
}

// unsettled notes that the store has refused a settlement.
func (w *world) unsettled(inv *invocation, g grip) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if of := inv.tenures[g]; of != nil {
		of.ended = w.grips[g].settlements > 1
	}
}

// lost checks that a lock is reported as lost for a reason: its process was
// frozen or its clock set, its end came near before a renewal was answered, an
// earlier settlement ended it, or its row went back. Nobody can take it over
// before that, except where clocks differ by more than Grace.
func (w *world) lost(inv *invocation, err error) {
	var lost *lock.LostError
	if inv == nil || inv.p.isDead() || !errors.As(err, &lost) || w.c.beyond() {
		return
	}
	near, upsets := clock.Wall(inv.p.clock).Add(lock.DefaultGrace+drift), inv.p.upsets.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	known := false
	for g, of := range inv.tenures {
		if !strings.HasSuffix(g.name, lost.Key.Name) {
			continue
		}
		if known = true; w.grips[g].forgotten || of.ended || of.upsets != upsets || !near.Before(of.until) {
			return
		}
	}
	if known {
		w.fail("without a reason: %v", err)
	}
}

// endsForAReason calls lost if ctx, under which the invocation works, ends. It
// does not once stop was called.
func (w *world) endsForAReason(ctx context.Context, inv *invocation) (stop func() bool) {
	return inv.p.onEnd(ctx, "work ended", func() { w.lost(inv, context.Cause(ctx)) })
}
