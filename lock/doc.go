// Package lock provides distributed locks with a memory of completed events.
// Most users never call it: package middleware does. Outside a Lambda handler:
//
//	locker, err := lock.New(store, nil)
//	err = locker.Do(ctx, lock.Key{Name: "nightly-report"}, report)
//
// A [Key] names the resource that is locked and the event that asks for it. A
// name has at most one current lease in the store, and an event is refused once
// it is completed. A lease is a promise about time, and a late holder may not
// know that it has lost the lock: pass [Lease.Fence] to the database that you
// write to, so that it can refuse such a holder.
//
// [Locker.AcquireAll] takes several locks together, [Locker.AcquireOneOf] lets
// several share a name, and with [Locker.Latest] one run serves a burst of
// events.
//
// Held ([ErrHeld]), completed ([ErrCompleted]), used for another payload
// ([*PayloadMismatchError]), lost ([ErrLost]) and broken ([*StoreError]) never
// share an error, but for the Cause of a [*HeldError]: a lock around the wait
// may be lost. docs/PROMISES.md says what is guaranteed.
package lock
