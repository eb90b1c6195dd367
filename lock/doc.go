// Package lock is the contract and the engine of lambdalock: one owner at a
// time for a name, and a memory of the events that were already handled.
//
// A [Locker] puts everything that is the same for every backend (retries,
// waiting, heartbeat, time limits, logging) above a small [Store], whose
// operations are single atomic steps. Most users never call this package: the
// decorator in package middleware does. It is useful by itself wherever a lock
// is wanted outside a Lambda handler:
//
//	locker, err := lock.New(store, nil)
//	err = locker.Do(ctx, lock.Key{Name: "nightly-report"}, func(ctx context.Context) error {
//		return report(ctx)
//	})
//
// # Guarantees
//
// At most one owner per name in the store at any time. A name whose owner died
// is free at the end of its lease, never earlier and never later. An event
// recorded as completed is refused for as long as it is remembered.
//
// # Not guaranteed
//
// A lease is a promise about time. Work that goes on after its context has
// ended, or clocks that differ by more than [Options.Grace], can make two
// owners overlap. Hand [Lease.Fence] to whatever the work writes to, and let it
// refuse a smaller number than the largest it has seen: that closes the gap.
//
// # Errors
//
// Busy ([ErrHeld]), done ([ErrDone]), lost ([ErrLost]) and broken
// ([*StoreError]) are different things and never share an error. A key that
// cannot be used is a [*KeyError], a wrong setting a [*ConfigError].
//
// # Timing
//
// Leases are wall-clock times, because the monotonic clock stands still while a
// Lambda environment is frozen. The owner counts from before its request was
// sent, a contender compares with the time before its own request was sent.
//
// # Concurrency
//
// A [Locker] is safe for concurrent use and keeps no state between
// acquisitions; a [Lock] belongs to the call that acquired it.
package lock
