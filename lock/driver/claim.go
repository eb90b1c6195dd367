package driver

import "time"

// Claim asks for a name.
type Claim struct {
	Name  string // valid UTF-8, 1 to 2048 bytes
	Event string // valid UTF-8, at most 50 bytes; empty for a plain mutex
	Order string // valid UTF-8, at most 256 bytes; empty if unordered
	// Payload is the digest of the event's payload, at most 22 bytes of UTF-8.
	// Empty without an Event, or if the caller gave none. It does not decide
	// whether the claim is granted.
	Payload string
	// Token is new for every acquisition and the same in all its requests: 26
	// letters and digits.
	Token string
	// Holder describes the claimant to a person: function, request, log stream. 1
	// to 512 bytes of UTF-8: an empty one would hide that a dead owner was taken
	// over.
	Holder string
	// Now is the claimant's wall clock, read before the request was sent.
	Now time.Time
	// Stamp orders the claims of a name: a row without a holder takes only a claim
	// whose stamp is above its own. That refuses a delayed copy of a claim whose
	// lock was already released. It usually equals Now; a claimant whose clock is
	// behind raises it above the row's.
	Stamp       time.Time
	Until       time.Time // end of the lease
	DeleteAfter time.Time // the row's new DeleteAfter
	Place       int64     // of the claimant in the [Line]; zero if it has none
	// InterruptedFor is how long the event counts as interrupted after the end of
	// the lease if the owner dies, in whole milliseconds. Zero: it does not. It is
	// zero without an Event, and unless the store is a [Coalescer].
	InterruptedFor time.Duration
	// TakesMarks is whether the claimant will look at marks. It is false unless the
	// store is a [Coalescer].
	TakesMarks bool
}
