package keyfuncs

import (
	"context"
	"errors"
	"fmt"

	"github.com/lambdalock/lambdalock/lock"
)

// Keys computes the keys of an event that needs several locks together, for
// middleware.WithLocks, in any order. Errors mean what they mean for a [Func].
// Without any key the handler does not run, and the invocation fails. Every
// Event and Order must stand for the whole event: it counts as completed, or as
// stale, if it is so under any key.
type Keys[E any] func(context.Context, E) ([]lock.Key, error)

// All takes several locks for an event, one of every key function, such as
// those of both accounts of a transfer:
//
//	All(EventBridgeDetail(from), EventBridgeDetail(to))
//
// Do not use [Once] here: a later transfer from one of the accounts would be
// skipped. All returns the first error; a function that returns [ErrNoLock]
// only adds no lock, unless all do. All panics without functions, or if one is
// nil.
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
