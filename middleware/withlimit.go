package middleware

import (
	"context"
	"slices"

	"github.com/lambdalock/lambdalock/lock"
)

// WithLimit is [WithLock] for a name that up to n invocations may hold at the
// same time, for example to call a partner's API no more than n times in
// parallel: at least 1, at most lock.MaxLimit. If nameOf returns "", the
// handler does not run, and the error is a *lock.NoKeyError.
//
// It tells no duplicates apart, so put it inside the wrapper that does:
//
//	EachSQSBody(keyfuncs.Prefix(byOrder, "order"), WithLimit(partnerOf, 3, handle, OnHeld(Wait(d))))
//
// Only a handler with dynamostore.Transact needs that wrapper inside. WithLimit
// panics with [OnInterrupted], [OnCompleted] and [RememberFor], which are about
// events. [Remember] counts only for wrappers inside it.
//
// Give all functions that share a name the same n and the same [Namespace]; if
// two differ, the larger n counts. Each of the n that is found held costs one
// more request.
func WithLimit[E, H any](nameOf func(event E) string, n int, handler H, opts ...Option) H {
	if nameOf == nil {
		refuse("the function for the name is nil: pass one that returns the name that up to %d may hold", n)
	}
	if n < 1 || n > lock.MaxLimit {
		refuse("WithLimit(…, %d, …): use 1 to %d", n, lock.MaxLimit)
	}
	return wrap(func(_ context.Context, event E) (keySet, error) {
		return keySet{Key: lock.Key{Name: nameOf(event)}}, nil
	}, handler, append(slices.Clone(opts), limitedTo(n)))
}

// limitedTo makes a wrapper acquire a name as one of n. It is the last option.
func limitedTo(n int) Option {
	return func(s *settings) {
		aboutEvents := func(option string, given bool) {
			if given {
				refuse("%s is about events, and WithLimit tells none apart: give it to the wrapper around this one", option)
			}
		}
		aboutEvents("OnInterrupted", s.engine.OnInterrupted != nil)
		aboutEvents("OnCompleted", s.completed.chosen)
		aboutEvents("RememberFor", s.rememberFor != nil)
		s.acquire = func(ctx context.Context, l *lock.Locker, keys keySet) (*lock.Lock, error) {
			return l.AcquireOneOf(ctx, keys.Name, n)
		}
	}
}
