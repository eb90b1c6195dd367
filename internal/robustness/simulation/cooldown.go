package simulation

import "time"

// least is the HoldAtLeast of locks that have one. Some of it is left, after
// short work, for a claimant whose clock is ahead.
func (c Config) least() time.Duration {
	if c.ServerClock || c.beyond() {
		return 2 * time.Second
	}
	return c.Skew + 3*time.Second
}

// cooldown is how a lock of a name was ended: nobody may have the name before
// its end.
type cooldown struct {
	ownership
	end       time.Time
	rollbacks int // of the row
}

// cools notes that the store has ended the lease of o, whose first settlement
// asked for a cooldown. It begins no earlier than that one was sent, whichever
// was applied. Where claimants' clocks decide, that of the next one may be
// ahead.
func (sim *simulation) cools(o ownership, known *owner) {
	end := known.settled.Add(known.cools)
	if !sim.c.ServerClock {
		end = end.Add(-sim.c.Skew)
	}
	sim.cooldowns[o.name] = cooldown{o, end, sim.rollbacks(o.name)}
	sim.report.Cooldowns++
}

// outlasts checks that a claim was not granted in the cooldown of another lock.
func (sim *simulation) outlasts(o ownership, a *answer) {
	c, ok := sim.cooldowns[o.name]
	if a.err != nil || !a.ok || !ok || c.token == o.token || c.rollbacks != sim.rollbacks(o.name) {
		return
	}
	if left := time.Until(c.end); left > 0 {
		sim.fail("%s was granted to %s %v before the cooldown of %s was over", o.name, o.token, left, c.token)
	}
}
