package lock

import (
	"context"
	"time"
)

// Store keeps one [Row] per name. Each method is one atomic step: it applies as
// a whole, is refused as a whole, or fails with an error, in which case it may
// have been applied unless the error is a [*StoreError] with Rejected set. A
// store neither retries nor waits; the [Locker] does.
//
// Every method may be sent twice, and a copy may arrive late, even after other
// requests of the same token: none of that may bring a released lock back, move
// a lease end backwards or touch another owner's row. No method touches a row
// that is [Row.Newer]. Package locktest checks all of it.
//
// The bool tells whether the request was applied. When it was, the Row is the
// state afterwards; when it was refused, the state that refused it, or the zero
// Row where the store cannot tell.
//
// A store keeps rows and decides nothing: what a row means for a claim says
// [Row.Judge], what a name remembers and how long its row lives the [Locker].
type Store interface {
	// Acquire makes the claim's token the owner if [Row.Judge] says Granted.
	// The row's fence rises by one, or starts at the claim's time in
	// microseconds since 1970 when there was no row.
	Acquire(context.Context, *Claim) (Row, bool, error)
	// Renew moves the end of the lease, if the token is still the owner and the
	// new end is not before the present one. It never creates a row.
	Renew(context.Context, *Renewal) (Row, bool, error)
	// Release frees the name, if the token is still the owner, and replaces the
	// row's memory when one is given. With Abandon it gives up a claim.
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
	Keep  time.Time // the row's new Keep
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
	// Memory replaces the row's memory, as it is; nil leaves the row's.
	Memory *Memory
	Keep   time.Time
	// Abandon gives up a claim whose outcome is unknown, and of which copies may
	// still be under way. Whoever owns the row, its stamp is raised to Stamp if it
	// is below, so that no copy is granted any more; and if the token owns the row,
	// the name is freed. Nothing else of another owner's row changes but its Keep. A
	// store that needs several steps for this raises the stamp before it looks at the
	// owner. The bool tells whether anything was applied.
	Abandon bool
	Stamp   time.Time // the highest of the claim; with Abandon only
}

// Row is what a store knows of a name.
type Row struct {
	Token string // the owner; empty when the name is free
	// Since is the stamp: that of the last owner's claim, or a later one of a claim
	// that was given up since. It stays after the release.
	Since  time.Time
	Until  time.Time // end of the owner's lease
	Fence  int64     // rises with every acquisition
	Event  string    // the owner's; empty when the name is free
	Holder string    // the owner; empty when the name is free
	// Previous is set by an Acquire that took the name over from a holder that
	// died: that holder.
	Previous string
	Memory   Memory
	// Keep is the time until which the row must be kept; garbage collection may
	// remove it afterwards.
	Keep time.Time
	// Newer: a later version of this library wrote the row in a format that this
	// one cannot read. Nothing else in the Row means anything.
	Newer bool
}

// Verdict is what a row means for a claim.
type Verdict int

// The verdicts.
const (
	Granted Verdict = iota // the claim may take the row, or already has it
	Done                   // the event is remembered as completed
	Stale                  // the same or a later Order was completed
	Held                   // another token owns the row, or the claim's own by a later claim or renewal
	Behind                 // nobody holds the row, but the claim's stamp is not above the row's
	Newer                  // the row's format is not known to this version
)

// Judge is the rule by which a row is given away. Stores that can run Go
// use it; the others express the same in their own language.
//
// When the lease end itself has come the row is still held: an owner may use its
// lease to the last moment. The claim's own token is no key to everything: a late
// copy may not undo a later claim of the same acquisition, or a renewal.
func (r *Row) Judge(c *Claim) Verdict {
	switch {
	case r.Newer:
		return Newer
	case c.Event != "" && r.Memory.remembers(c.Event, c.Now):
		return Done
	case c.Order != "" && r.Memory.Top != "" && c.Order <= r.Memory.Top:
		return Stale
	case r.Token != "" && r.Token == c.Token:
		if r.Since.After(c.Stamp) || r.Until.After(c.Until) {
			return Held
		}
		return Granted
	case r.Token != "" && !r.Until.Before(c.Now):
		return Held
	case !r.Since.IsZero() && !r.Since.Before(c.Stamp):
		return Behind
	}
	return Granted
}

// unknown: every row that was ever acquired has a stamp.
func (r *Row) unknown() bool { return r.Since.IsZero() && !r.Newer }
