package simulation

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/lock"
)

// hold is the time for which a handler answers for a name: until it returns,
// its context ends or its process is frozen, whichever comes first. With a
// lease to the deadline a handler may ignore the end of its context: then until
// it returns, or until renewals have failed for too long.
type hold struct {
	sim    *simulation
	key    lock.Key
	fence  int64
	start  time.Time
	end    time.Time // zero: it goes on
	exempt bool      // it may go on although it no longer answers for the name
}

// setExempt ends a hold whose handler may go on, and exempts it from the
// checks.
func (h *hold) setExempt() {
	h.sim.mu.Lock()
	defer h.sim.mu.Unlock()
	sim := h.sim
	sim.trace("the work under %v with fence %d is exempt from the checks", h.key, h.fence)
	h.exempt = true
	h.over()
}

func (h *hold) over() {
	if h.end.IsZero() {
		h.end = time.Now()
	}
}

// handle is the work of every handler. It has an effect on the resource of each
// key at its beginning, and after every pause.
func (inv *invocation) handle(ctx context.Context, keys []lock.Key, lease lock.LeaseMode) error {
	p := inv.p
	p.clock.Awake()
	if p.isDead() {
		return errKilled
	}
	// A freeze at the very instant of the answer comes before the work begins, and
	// nobody can see it.
	unseen := func() bool { return p.freezes.Load() != inv.freezes }
	holds := p.sim.begin(ctx, keys, lease, unseen())
	defer p.sim.finish(holds)
	if lease == lock.UntilDeadline() {
		defer inv.watchOvertime(ctx, holds)()
	} else {
		defer p.onEnd(ctx, "work exempt", func() {
			for _, h := range holds {
				h.setExempt()
			}
		})()
	}
	defer p.sim.endsForAReason(ctx, inv)()
	p.answersFor(holds, true)
	defer p.answersFor(holds, false)
	if unseen() {
		for _, h := range holds {
			h.setExempt()
		}
	}
	pauses, longest := 1+inv.random.IntN(4), 1500
	if inv.ignores {
		longest = 5000
	}
	if inv.ignores && inv.livesOn {
		longest = 10000
	}
	for range pauses {
		waits := ctx
		if inv.ignores {
			waits = p.life
		}
		if err := p.clock.Sleep(waits, time.Duration(inv.random.IntN(longest))*time.Millisecond); err != nil {
			return err
		}
		p.clock.Awake()
		if p.isDead() {
			return errKilled
		}
		for _, h := range holds {
			p.sim.effect(h)
		}
	}
	return nil
}

// watchOvertime exempts work from the checks once its lease counts as lost
// because no renewal was granted although one was sent.
func (inv *invocation) watchOvertime(ctx context.Context, holds []*hold) (stop func()) {
	const soon = 50 * time.Millisecond
	p, first := inv.p, leaseOf(ctx, holds[0].key).Until
	var timer clock.Timer
	look := func() {
		next := time.Hour
		for _, h := range holds {
			left := leaseOf(ctx, h.key).Until.Add(-lock.DefaultGrace).Sub(clock.Wall(p.clock))
			switch {
			case left > 0:
				next = min(next, left)
			case p.sim.isRenewing(inv, h.key):
				h.setExempt()
			default:
				next = soon
			}
		}
		timer.Reset(next)
	}
	timer = p.clock.AfterFunc(math.MaxInt64, func() { look() })
	look()
	return func() {
		timer.Stop()
		if leaseOf(ctx, holds[0].key).Until.After(first) {
			p.sim.count(func(r *report) { r.Overtime++ })
		}
	}
}

// answersFor notes which holds end when the process is frozen.
func (p *process) answersFor(holds []*hold, yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if yes {
		p.holds = append(p.holds, holds...)
	} else {
		p.holds = slices.DeleteFunc(p.holds, func(h *hold) bool { return slices.Contains(holds, h) })
	}
}

// begin notes that a handler runs under keys, whose leases ctx carries, and
// which it answers for unless it is exempt. None of their events may be
// completed (P5).
func (sim *simulation) begin(ctx context.Context, keys []lock.Key, lease lock.LeaseMode, exempt bool) []*hold {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.report.Runs++
	var holds []*hold
	for _, key := range keys {
		h := &hold{sim: sim, key: key, start: time.Now(), fence: leaseOf(ctx, key).Fence}
		exempt = exempt || sim.isForgotten(h)
		if done, ok := sim.completions[eventOf(key)]; ok && key.Event != "" && !exempt && !sim.stale(h, done.at) {
			sim.fail("%v runs, although it was completed at %v", key, done.at.Sub(sim.began))
		}
		if h.fence == 0 {
			sim.fail("the context of the work under %v has no lease", key)
		}
		sim.trace("%s has %v with fence %d and %v until %v", invocationOf(ctx).p.name, key, h.fence, lease, lock.Leases(ctx)[0].Until.Sub(sim.began))
		if exempt {
			h.exempt, h.end = true, h.start
		} else {
			sim.holds = append(sim.holds, h)
		}
		holds = append(holds, h)
		sim.effectLocked(h)
	}
	return holds
}

// stale reports whether the claim of h was sent before that time. Where clocks
// differ by more than Grace, the next owner may complete the event before the
// answer to that claim arrives.
func (sim *simulation) stale(h *hold, at time.Time) bool {
	return sim.c.beyond() && slices.ContainsFunc(sim.grants, func(g grant) bool {
		return g.name == eventOf(h.key).name && g.fence == h.fence && g.sent.Before(at)
	})
}

func leaseOf(ctx context.Context, key lock.Key) lock.Lease {
	for _, l := range lock.Leases(ctx) {
		if l.Key.Name == key.Name {
			return l
		}
	}
	return lock.Lease{}
}

func (sim *simulation) finish(holds []*hold) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	for _, h := range holds {
		sim.trace("the work under %v with fence %d ends", h.key, h.fence)
		h.over()
	}
}

func (sim *simulation) effect(h *hold) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.effectLocked(h)
}

// effectLocked is a write of a handler to the resource that a name stands for.
// The resource refuses it if it knows a higher fence. A handler that has the
// name is never refused (P3).
func (sim *simulation) effectLocked(h *hold) {
	if h.key.Name == limitedName {
		return // its slots have fences that cannot be compared
	}
	highest := sim.fences[h.key.Name]
	switch {
	case highest == nil || h.fence > highest.fence:
		sim.fences[h.key.Name] = h
	case h == highest:
	case sim.mayHaveRepeated(h):
	case h.fence == highest.fence:
		sim.fail("%v and %v have the fence %d", h.key, highest.key, h.fence)
	case h.exempt || sim.c.beyond():
		sim.report.Stale++
	default:
		sim.fail("the resource of %v refused fence %d of its holder, because it knows %d", h.key, h.fence, highest.fence)
	}
}
