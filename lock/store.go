package lock

import (
	"context"
	"slices"
	"time"
)

// Store keeps one [Row] per name. Each method is one atomic step: it applies as
// a whole, is refused as a whole, or fails with an error, in which case it may
// have been applied unless the error is a [*StoreError] with Rejected set. A
// store neither retries nor waits; the [Locker] does.
//
// Every method may be sent twice, and a copy may arrive late, even after other
// requests of the same token: none of that may bring a released lock back, move
// a lease end backwards or touch another owner's row. Package locktest checks
// all of it.
//
// The bool tells whether the request was applied. When it was, the Row is the
// state afterwards; when it was refused, the state that refused it, or the zero
// Row where the store cannot tell.
type Store interface {
	// Acquire makes the claim's token the owner if [Row.Judge] says Granted.
	// The row's fence rises by one, or starts at the claim's time in
	// microseconds since 1970 when there was no row.
	Acquire(context.Context, *Claim) (Row, bool, error)
	// Renew moves the end of the lease, if the token is still the owner and the
	// new end is not before the present one. It never creates a row.
	Renew(context.Context, *Renewal) (Row, bool, error)
	// Release frees the name, if the token is still the owner, and replaces the
	// row's memory when one is given.
	Release(context.Context, *Settlement) (Row, bool, error)
	// Check opens the connection and reports whether the store can be reached
	// at all. It changes nothing, and needs no permission beyond those of the
	// other methods.
	Check(context.Context) error
}

// Claim asks for a name.
type Claim struct {
	Name  string // valid UTF-8, 1 to 2048 bytes
	Event string // valid UTF-8, at most 50 bytes; empty for a plain mutex
	Order string // valid UTF-8, at most 256 bytes; empty when unordered
	Token string // new for every acquisition; the same in all its requests
	// Holder describes the claimant to a person: function, request, log stream.
	Holder string
	// Now is the claimant's wall clock, read before the request was sent.
	Now time.Time
	// Stamp orders the claims of a name: a free row takes only a claim whose
	// stamp is above that of its last owner. That is what refuses a delayed
	// copy of a claim that was already released. Usually equal to Now; a
	// claimant whose clock is behind raises it above the row's.
	Stamp time.Time
	Until time.Time // end of the lease
	Keep  time.Time // the row may be garbage-collected after this time
}

// Renewal moves the end of a lease.
type Renewal struct {
	Name, Token string
	Until       time.Time
	Keep        time.Time
}

// Settlement ends a lease.
type Settlement struct {
	Name, Token string
	// Memory replaces the row's memory; nil leaves it as it is. A store keeps
	// the whole of it or, where space is short, at least the last eight events
	// and no result; the returned Row tells which.
	Memory *Memory
	Keep   time.Time
	// Abandon settles a claim whose outcome is unknown: besides freeing the row
	// if it is owned by the token, a row without owner has its stamp raised to
	// Stamp, so that the claim is refused if it arrives later.
	Abandon bool
	Stamp   time.Time // of the claim
}

// Row is what a store knows of a name.
type Row struct {
	Token  string // the owner; empty when the name is free
	Since  time.Time
	Until  time.Time
	Fence  int64 // rises with every acquisition
	Event  string
	Holder string // the owner; empty when the name is free
	// Previous is set by an Acquire that took the name over from a holder that
	// died: that holder.
	Previous string
	Memory   Memory
}

// Memory is what a name remembers of its completed events.
type Memory struct {
	Done   []Completed // oldest first
	Top    string      // highest completed Order
	Result Result      // of the last completed event that recorded one
}

// Completed is an event that must not run again before Until (milliseconds).
type Completed struct {
	Event string
	Until time.Time
}

// Result is what a completed event answered, for replay.
type Result struct {
	Event string // whose; empty when there is none
	Body  []byte
}

// Verdict is what a row means for a claim.
type Verdict int

// The verdicts, in the order in which they are decided.
const (
	Granted Verdict = iota // the claim may take the row, or already has it
	Done                   // the event is remembered as completed
	Stale                  // the same or a later Order was completed
	Held                   // another token owns the row
	Behind                 // the row is free, but the claim's stamp is not above its last owner's
)

// Judge is the rule by which a row is given away. Stores that can run Go
// use it; the others express the same in their own language. When the lease end
// itself has come the row is still held: an owner may use its lease to the last
// moment.
func (r *Row) Judge(c *Claim) Verdict {
	switch {
	case r.Token != "" && r.Token == c.Token:
		return Granted
	case c.Event != "" && r.Memory.remembers(c.Event, c.Now):
		return Done
	case c.Order != "" && r.Memory.Top != "" && c.Order <= r.Memory.Top:
		return Stale
	case r.Token != "" && !r.Until.Before(c.Now):
		return Held
	case r.Token == "" && !r.Since.IsZero() && !r.Since.Before(c.Stamp):
		return Behind
	}
	return Granted
}

// unknown: every row that was ever acquired has a stamp.
func (r *Row) unknown() bool { return r.Since.IsZero() }

func (m *Memory) remembers(event string, now time.Time) bool {
	return slices.ContainsFunc(m.Done, func(c Completed) bool {
		return c.Event == event && c.Until.UnixMilli() >= now.UnixMilli()
	})
}

// with is the memory after one more completed event.
func (m *Memory) with(c Completed, order string, result Result, now time.Time) Memory {
	next := Memory{Top: max(m.Top, order), Result: m.Result}
	if c.Event == "" {
		next.Done = m.Done
		return next
	}
	next.Done = make([]Completed, 0, len(m.Done)+1)
	for _, old := range m.Done {
		if old.Event != c.Event && old.Until.UnixMilli() >= now.UnixMilli() {
			next.Done = append(next.Done, old)
		}
	}
	// What completes last is forgotten last, also within one millisecond and
	// where the clock of the owner before was a little ahead.
	if n := len(m.Done); n > 0 {
		if ahead := m.Done[n-1].Until.Sub(c.Until); ahead >= 0 && ahead < DefaultGrace {
			c.Until = m.Done[n-1].Until.Add(time.Millisecond)
		}
	}
	next.Done = append(next.Done, c)
	if result.Event != "" {
		next.Result = result
	} else if next.Result.Event == c.Event || !next.remembers(next.Result.Event, now) {
		next.Result = Result{}
	}
	return next
}
