package driver

import "time"

// Settlement ends a lease, or gives up a claim.
type Settlement struct {
	Name, Token string
	// Memory replaces the row's memory, unchanged. Nil keeps the row's.
	Memory      *Memory
	DeleteAfter time.Time // the row's new DeleteAfter
	// Until is the end of a cooldown: until then CooldownToken owns the name. Zero:
	// the name is free. With Abandon it is zero.
	Until time.Time
	// CooldownToken is a new token, which no claimant has: so no late request of
	// the owner changes anything in the cooldown.
	CooldownToken string
	Now           time.Time // the owner's wall clock, read before the request was sent
	// Abandon gives up a claim whose outcome is unknown and whose copies may still
	// be under way. Regardless of the owner, the row's stamp is raised to Stamp if
	// it is below, so that no copy is granted from then on. If the token owns the
	// row, the name is released too. In another owner's row, only the stamp and
	// DeleteAfter change. A store that needs several steps raises the stamp before
	// it looks at the owner. The bool of Settle reports whether anything was
	// applied.
	Abandon bool
	// MarksBelow refuses the settlement unless the row has fewer marks, and is
	// not closed for them. Zero: it may have any. Only for a [Coalescer]; with
	// Abandon it is zero.
	MarksBelow int64
	// Stamp is the highest stamp of the claim. Without Abandon it may be zero, and
	// only a replicated store needs it: a replica that the token does not own
	// rejects late copies of the claim once its stamp is raised.
	Stamp time.Time
}
