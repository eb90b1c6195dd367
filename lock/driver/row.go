package driver

import "time"

// Row is what a store knows about a name.
type Row struct {
	Token string // of the owner; empty if the name is free
	// Stamp is the stamp of the last owner's claim or, if that is later, of a claim
	// that was given up since, or of a mark. A release keeps it.
	Stamp time.Time
	Until time.Time // end of the owner's lease
	Fence int64     // rises with every acquisition
	Event string    // of the owner; empty if the name is free
	// Payload is that of the owner's claim; empty if it had none, or if the name is
	// free.
	Payload string
	Holder  string // describes the owner to people; empty if the name is free, or in its cooldown
	// Cooldown is the token whose settlement has begun the cooldown of the name,
	// while [Settlement.CooldownToken] owns it. Empty in every other Row.
	Cooldown string
	// InterruptedFor is that of the owner's claim; zero if the name is free.
	InterruptedFor time.Duration
	// Previous is the run of the dead owner whose name this Acquire took over,
	// without an Until. It is the zero value in every other Row.
	Previous InterruptedEvent
	// Marks is how often others have asked an owner for one more run since an event
	// was last completed. -1: it takes no more; see [Mark]. The next owner inherits
	// those of one that died or failed.
	Marks int64
	// TakesMarks is whether the owner looks at marks, as its claim said; see
	// [Row.Coalesces].
	TakesMarks bool
	// Line is the last place that was given to a waiter, and Served that of the
	// last owner that had one. Both are zero unless the store is a [Line]. They
	// outlast the owner.
	Line, Served int64
	Memory       Memory
	// DeleteAfter is the time until which the row must be kept. Afterwards garbage
	// collection may delete it.
	DeleteAfter time.Time
	// Newer reports whether a later version of this library wrote the row, in a
	// format that this version cannot read. No other field means anything then.
	Newer bool
	// Untold reports whether the store has refused a request and cannot say which
	// row was the reason. No other field means anything then.
	Untold bool
}

// Verdict is what a row means for a claim.
type Verdict int

// The verdicts.
const (
	Granted   Verdict = iota // the claim may take the row, or already has it
	Completed                // the event was already completed
	Stale                    // an event with the same or a later Order was completed
	Held                     // by another token, or by this one with a later claim or renewal
	Behind                   // the row has no holder, but the claim's stamp is not above the row's
	Newer                    // this version does not know the row's format
)

// Judge decides whether c may take r. Stores that can run Go call it; the
// others express the same rule in their own language.
//
// At the instant at which a lease ends the row is still held, because an owner
// may use its lease to the end. A claim with the owner's token may be refused
// too, because a late copy must not undo a later claim of the same acquisition,
// or a renewal.
func (r *Row) Judge(c *Claim) Verdict {
	switch {
	case r.Newer:
		return Newer
	case c.Event != "" && r.Memory.Has(c.Event, c.Now):
		return Completed
	case c.Order != "" && r.Memory.HighestOrder != "" && c.Order <= r.Memory.HighestOrder:
		return Stale
	case r.OwnedBy(c.Token):
		if r.Stamp.After(c.Stamp) || r.Until.After(c.Until) {
			return Held
		}
		return Granted
	case r.Token != "" && !r.Until.Before(c.Now):
		return Held
	case !r.Stamp.IsZero() && !r.Stamp.Before(c.Stamp):
		return Behind
	}
	return Granted
}

// Take makes c, which Judge has granted r, its owner. now is the clock by which
// the store judges leases: c.Stamp if the claimants' clocks decide, or else the
// server's time.
//
// The fence becomes now in microseconds since 1970, so that it is above every
// fence that was given before, even if the store has lost the row or has an
// older state of it again. It is always above the fence of r, whatever the
// clocks show. If the claim meets its own earlier copy, it never falls.
//
// The event of a dead owner becomes one of the interrupted events of the row,
// if [Row.Leaves] says so.
func (r *Row) Take(c *Claim, now time.Time) {
	next := r.Fence + 1
	switch {
	case r.Holder == "": // no owner, or only its cooldown
		r.Previous = InterruptedEvent{}
	case r.Token == c.Token:
		r.Previous, next = InterruptedEvent{}, r.Fence
	default:
		r.Previous = InterruptedEvent{Event: r.Event, Payload: r.Payload, Holder: r.Holder, Since: r.Stamp}
	}
	if r.Leaves(c) {
		e := r.Previous
		e.Until = r.Until.Add(r.InterruptedFor).Truncate(time.Millisecond)
		r.Memory.Interrupt(e, c.Now)
	}
	r.Fence = max(next, now.UnixMicro())
	r.InterruptedFor = c.InterruptedFor
	r.Token, r.Event, r.Payload, r.Holder, r.Cooldown, r.TakesMarks = c.Token, c.Event, c.Payload, c.Holder, "", c.TakesMarks
	r.Stamp, r.Until, r.DeleteAfter = c.Stamp, c.Until, c.DeleteAfter
	if c.Place > 0 {
		r.Served = c.Place
	}
}

// Leaves reports whether the owner, which is dead if c is granted the row,
// leaves its event there as an interrupted one.
func (r *Row) Leaves(c *Claim) bool {
	return r.Token != "" && r.Token != c.Token && r.InterruptedFor > 0
}

// Join gives out the next place in line, and reports whether it did: only while
// the row has an owner.
func (r *Row) Join() bool {
	if r.Newer || r.Token == "" {
		return false
	}
	r.Line++
	return true
}

// OwnedBy reports whether the token owns the row.
func (r *Row) OwnedBy(token string) bool { return token != "" && r.Token == token }

// Since returns when the owner acquired the row: the time of the stamp, which
// is later if there were marks, or claims that were given up; or that of the
// fence, as [Row.Take] makes it, which is later if a clock was ahead before.
// The earlier of them is right, or nearer to it.
func (r *Row) Since() time.Time {
	if fence := time.UnixMicro(r.Fence); r.Fence != 0 && fence.Before(r.Stamp) {
		return fence
	}
	return r.Stamp
}

// Cooling reports whether the owner has ended its lease, and the name stays
// held only until the cooldown is over.
func (r *Row) Cooling() bool { return r.Cooldown != "" }

// Extend moves the end of the lease as n asks, and reports whether it did: only
// for the owner, and never back. ended says that the lease is over by the
// store's own clock: then a renewal that was under way for long must not give a
// dead owner more time. A store without a clock passes false. There a late
// renewal gains nothing, because it asks for an end by the owner's clock.
func (r *Row) Extend(n *Renewal, ended bool) bool {
	if r.Newer || ended || !r.OwnedBy(n.Token) || n.Until.Before(r.Until) {
		return false
	}
	r.Until, r.DeleteAfter = n.Until, n.DeleteAfter
	return true
}

// Settle applies s, and reports whether anything changed: the owner releases
// the row, for the next claim or for a cooldown, and what abandons a claim
// raises the stamp in any row.
func (r *Row) Settle(s *Settlement) bool {
	owner, raise := r.OwnedBy(s.Token) && !r.Owes(s), s.Abandon && r.Stamp.Before(s.Stamp)
	if r.Newer || !owner && !raise {
		return false
	}
	if raise {
		r.Stamp = s.Stamp
	}
	if owner {
		r.Token, r.Until, r.Event, r.Payload, r.Holder, r.Cooldown, r.TakesMarks, r.InterruptedFor = "", s.Until, "", "", "", "", false, 0
		if !s.Until.IsZero() {
			r.Token, r.Cooldown = s.CooldownToken, s.Token
		}
		if s.Memory != nil {
			r.Memory, r.Marks = *s.Memory, 0
		}
	}
	r.DeleteAfter = s.DeleteAfter
	return true
}

// Unknown reports whether the store answered without a row: there is none, or
// it is Untold. Every row that was ever acquired has a stamp.
func (r *Row) Unknown() bool { return r.Stamp.IsZero() && !r.Newer }
