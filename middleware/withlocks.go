package middleware

import (
	"context"
	"slices"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// WithLocks is [WithLock] for a handler that needs several locks together, such
// as a move between two warehouses: it runs only while it holds all of them.
// [keyfuncs.All] combines the keys; every Event must stand for the whole event.
// Two events that need the same locks never deadlock.
//
// If one lock is held, those acquired before it are released, and [OnHeld]
// decides; [Wait] keeps them and is for all locks together. If the event is
// completed under any key, and no lock that is asked before is held,
// [OnCompleted] decides. With [FailOpen], the handler runs without any lock if
// the store does not answer for one of them. lock.Leases(ctx) has every lease,
// and the context ends when any of them is lost.
//
// dynamostore.Transact needs a WithLock inside, whose key has the Event:
// WithLocks(All(byFrom, byTo), WithLock(Once(byID), h)). As the handler of
// records, add OnHeld(Wait(d)): records of a batch that meet at a lock inside
// are refused at once. The store gets two requests for each key, one after the
// other.
func WithLocks[E, H any](keys keyfuncs.Keys[E], handler H, opts ...Option) H {
	if keys == nil {
		refuse("the key functions are nil: pass keyfuncs.All, or a function of your own that returns the keys")
	}
	return wrap(func(ctx context.Context, event E) (keySet, error) {
		all, err := keys(ctx, event)
		return setOf(all), err
	}, handler, append(slices.Clone(opts), forSeveral))
}

// forSeveral makes a wrapper acquire all keys.
func forSeveral(s *settings) {
	s.acquire = func(ctx context.Context, l *lock.Locker, keys keySet) (*lock.Lock, error) {
		return l.AcquireAll(ctx, keys.all...)
	}
}

// setOf returns the set of all. The key that stands for the event is the first
// one that has an Event, because such an event has duplicates.
func setOf(all []lock.Key) keySet {
	s := keySet{all: append([]lock.Key{}, all...)} // never nil, so that no keys stay an error
	for i := range all {
		if i == 0 || s.Event == "" && all[i].Event != "" {
			s.Key = all[i]
		}
	}
	return s
}
