// Package lock provides distributed locks with a memory of completed events.
// Most users never call it: package middleware does. Outside a Lambda handler:
//
//	locker, err := lock.New(store, nil)
//	err = locker.Do(ctx, lock.Key{Name: "nightly-report"}, report)
//
// A [Key] names the resource that is locked and the event that asks for it. At
// most one lease per name is current in the store, and an event is refused once
// it is completed. A lease is a promise about time: if you pass [Lease.Fence]
// to what you write to, that can refuse a late holder that does not know that
// it has lost the lock.
//
// Held ([ErrHeld]), completed ([ErrCompleted]), lost ([ErrLost]) and broken
// ([*StoreError]) are four different things. docs/DESIGN.md says what is
// guaranteed.
package lock
