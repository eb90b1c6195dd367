// Package driver defines what a store of locks implements. Callers use package
// lock, which adds retries, waiting, heartbeats, time limits, logging and a
// memory of completed events to a [Store].
//
// If you write a store, begin with the example of [Store], and run package
// lock/locktest against it; a store that fails is not safe to use.
package driver

import (
	"context"
	"fmt"
)

// Store keeps one [Row] per name. Each method is one atomic step: its request
// is applied or refused as a whole, or fails; then it may have been applied,
// unless the error is an [*Error] with Unapplied set. A store neither retries
// nor waits, except that it may send requests for different names together, and
// wait a moment for those of the same batch of records. Each request gets its
// own answer. If the outcome of the whole is unknown, so is that of each.
//
// Every method may be called twice with the same request, and a copy of a
// request may arrive late, even after later requests of the same token. A copy
// must not revive a released lock, move the end of a lease backwards, or touch
// another owner's row. No method changes a row that is [Row.Newer], or sends a
// request whose context has ended.
//
// The bool reports whether the request was applied. The Row is the state
// afterwards, or the state that refused it: the zero Row if there is none, and
// one that is Untold if the store cannot tell.
//
// A store may judge leases by its own clock: a lease then lasts for the claim's
// Until less Now from when the store applies it, and a Row has the owner's own
// Until if the caller is the owner and the lease lasts, otherwise Now plus the
// time left. Times count to the microsecond; DeleteAfter may be rounded up to
// seconds.
//
// A type that wraps a Store must also be a [Line], a [Coalescer], a [Checker]
// or an [Inspector] if the Store is: embedding the interface hides them.
type Store interface {
	// Acquire makes the claim's token the owner if [Row.Judge] says Granted, as
	// [Row.Take] does.
	Acquire(context.Context, *Claim) (Row, bool, error)
	// Renew moves the end of the lease if the token is still the owner and the
	// new end is not before the present one, as [Row.Extend] does. A store that
	// looks at a clock of its own refuses it once the lease has ended. It never
	// creates a row.
	Renew(context.Context, *Renewal) (Row, bool, error)
	// Settle releases the name if the token is still the owner, and replaces
	// the row's memory if the settlement has one. The name may stay held for a
	// cooldown. With Abandon it gives up a claim. [Row.Settle] does all that.
	Settle(context.Context, *Settlement) (Row, bool, error)
}

// Describe returns what errors call the store, for metrics and traces. It is
// empty unless the Store is a [fmt.Stringer].
func Describe(s Store) string {
	if named, ok := s.(fmt.Stringer); ok {
		return named.String()
	}
	return ""
}

// Checker is a [Store] that has a connection to open.
type Checker interface {
	// Check opens the connection and returns an error if the store cannot be
	// reached, or cannot keep locks. It changes no row and needs no permission
	// beyond those of the Store's methods.
	Check(context.Context) error
}
