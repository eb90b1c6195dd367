package keyfuncs

import (
	"context"
	"errors"
	"fmt"

	"github.com/lambdalock/lambdalock/lock"
)

// Keys computes the keys of an event that needs several locks together, for
// middleware.WithLocks. Their order does not matter, because package lock sorts
// them. Errors mean what they mean for a [Func]. Without any key the handler
// does not run, and the invocation fails.
//
// Every Event must stand for the whole event, and not for what its own key
// locks: the event counts as completed if it is completed under any key, and as
// stale if its Order is stale under any.
type Keys[E any] func(context.Context, E) ([]lock.Key, error)

// All takes several locks for an event: that of every key function. For example
// a transfer locks both accounts:
//
//	All(EventBridgeDetail(from), EventBridgeDetail(to))
//
// where both keys get the id of the event as their Event. Do not use [Once]
// here: a later transfer from one of the accounts would be skipped.
//
// If one of the functions returns an error, such as [ErrIgnore], All returns
// it. A function that returns [ErrNoLock] only adds no lock; if all of them do,
// All returns ErrNoLock. So All(Optional(a), b) always locks b.
//
// All panics without functions, or if one is nil.
func All[E any](keys ...Func[E]) Keys[E] {
	if len(keys) == 0 {
		panic("lambdalock: keyfuncs.All(): give it the key function of each lock")
	}
	for i, key := range keys {
		if key == nil {
			panic(fmt.Sprintf("lambdalock: keyfuncs.All: key function %d is nil: leave it out", i+1))
		}
	}
	return func(ctx context.Context, event E) ([]lock.Key, error) {
		all := make([]lock.Key, 0, len(keys))
		for _, key := range keys {
			k, err := key(ctx, event)
			if errors.Is(err, ErrNoLock) {
				continue
			}
			if err != nil {
				return nil, err
			}
			all = append(all, k)
		}
		if len(all) == 0 {
			return nil, ErrNoLock
		}
		return all, nil
	}
}
