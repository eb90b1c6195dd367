// Package driver defines what a store of locks implements. Callers use package
// lock, which adds retries, waiting, heartbeats, time limits, logging and a
// memory of completed events to a [Store].
//
// If you write a store, run package lock/locktest against it; a store that
// fails is not safe to use.
package driver

import (
	"context"
	"fmt"
)

// Store keeps one [Row] per name. Each method is one atomic step: its request
// is applied as a whole, refused as a whole, or fails with an error. A request
// that failed may have been applied, unless the error is an [*Error] with
// Unapplied set. A store does not retry. It does not wait either, but for one
// thing: it may send requests for different names together, and wait a moment
// for those of the same batch of records. Each has an answer of its own. What
// is unknown of them together is unknown of each. A request whose context has
// ended before it was sent is not sent.
//
// Every method may be called twice with the same request, and a copy of a
// request may arrive late, even after later requests of the same token. None of
// that may bring a released lock back, move the end of a lease backwards, or
// touch another owner's row. No method changes a row that is [Row.Newer].
//
// The bool reports whether the request was applied. If it was, the Row is the
// state afterwards; if it was refused, the Row is the state that refused it:
// the zero Row if there is none, and a Row that is Untold if the store cannot
// tell.
//
// A store may judge leases by its own clock. Then only differences of the times
// in a request count: the lease of a claim lasts for Until less Now from the
// moment at which the store applies it. Until of a Row is by the caller's
// clock: the owner's own Until if the caller's token owns the row and its lease
// lasts, otherwise Now plus the time that is left. Stamps order claims and are
// not compared with any clock; the memory is judged by the claim's Now.
//
// A store only keeps rows. [Row.Judge] decides what a row means for a claim;
// package lock decides what a name remembers and how long its row lives. Times
// count to the microsecond: a store may drop what is finer, and may round
// DeleteAfter up to whole seconds.
//
// A Store may also be a [Line], a [Coalescer], a [Checker] or an [Inspector].
// Package lock asks the value that it was given. So a type that wraps a Store
// must have their methods, too: if it only embeds the interface Store, it hides
// them, and waiters, for example, have no places in line.
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
