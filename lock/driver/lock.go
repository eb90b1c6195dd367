package driver

import "context"

// Lock is a lock that is held, as a store sees it that completes the event in
// the same request as other writes: see dynamostore.Transact.
type Lock interface {
	// Store returns the store that keeps the lock.
	Store() Store
	// CompleteWith completes the event and releases the name through send, which
	// applies the settlement together with other writes, all or none, and answers
	// like [Store].Release. The result is kept for replay; nil keeps none.
	//
	// send is repeated while it fails with an [*Error] that is Temporary, and must
	// stand that. If it never left open whether the request was applied, and
	// fails, nothing has happened: the lock goes on, and the error is a
	// *lock.StoreError. After any other error nobody knows, so the name stays held
	// until its lease ends. A *lock.LostError says that the settlement was
	// refused, and the other writes with it.
	CompleteWith(ctx context.Context, result []byte, send func(context.Context, *Settlement) (Row, bool, error)) error
}

type lockKey struct{}

// WithLock returns a context for work that runs under l.
func WithLock(ctx context.Context, l Lock) context.Context {
	return context.WithValue(ctx, lockKey{}, l)
}

// LockFrom returns the lock under which the code runs: the innermost one if
// there are several. It reports false if there is none.
func LockFrom(ctx context.Context) (Lock, bool) {
	l, ok := ctx.Value(lockKey{}).(Lock)
	return l, ok
}
