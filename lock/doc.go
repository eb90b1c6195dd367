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
// is free once its lease has ended by the clock of whoever asks for it, and not
// before; nothing else keeps a name from being taken, neither a claim that was
// refused nor a request that arrives late. An event recorded as completed is
// refused for as long as it is remembered: for [Options.Remember], unless the name
// completes more events than its row has room for ([Options.RememberAtLeast]).
//
// # Not guaranteed
//
// A lease is a promise about time. Work that goes on after its context has
// ended, or clocks that differ by more than [Options.Grace], can make two
// owners overlap. Hand [Lease.Fence] to whatever the work writes to, and let it
// refuse a smaller number than the largest it has seen: that closes the gap.
//
// A request that is given up is poisoned, so that no copy of it takes the lock later.
// That needs a store that answers; without one, such a copy holds the name until its
// lease ends.
//
// # Errors
//
// Busy ([ErrHeld]), done ([ErrDone]), lost ([ErrLost]) and broken
// ([*StoreError]) are different things and never share an error. A key that
// cannot be used is a [*KeyError], a wrong setting a [*ConfigError], and a deadline
// that is too near a [*DeadlineError].
//
// # Timing
//
// Leases are wall-clock times, because the monotonic clock stands still while a
// Lambda environment is frozen. The owner counts from before its request was
// sent, a contender compares with the time before its own request was sent.
//
// A claim that the store turns away for its load gives up after two tries, because the
// source delivers the event again. A completion goes on until shortly before the
// deadline, because nobody else can record what was done.
//
// # Concurrency
//
// A [Locker] is safe for concurrent use; a [Lock] belongs to the call that acquired
// it. Options.Observe, Options.Holder and the log handler may panic: the panic reaches
// the caller, and no lock is left behind.
package lock
