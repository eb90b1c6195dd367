package driver

import "context"

// Lock is a lock that is held. A store uses it to complete the event in the
// same request as other writes: see dynamostore.Transact. Package lock
// implements it.
type Lock interface {
	// Store returns the store that keeps the lock.
	Store() Store
	// CompleteWith completes the event and releases the name through send, which
	// applies the settlement together with other writes, all or none, and answers
	// like [Store].Settle. The result is kept for replay; nil keeps none.
	//
	// send is called again while it fails with an [*Error] that is not Lasting, so
	// it must be safe to repeat. The error is a *lock.StoreError if send failed. If
	// every failed call was Unapplied, nothing was applied and the lock goes on.
	// Otherwise the request may have been applied, so the name stays held until
	// its lease ends. A *lock.LostError says that the settlement was refused, and
	// the other writes with it. If the lock has ended already, or cannot be
	// completed in this way, send is not called and the error is never nil. If ctx
	// has ended, nothing is sent and the error is its cause.
	CompleteWith(ctx context.Context, result []byte, send func(context.Context, *Settlement) (Row, bool, error)) error
}

type lockKey struct{}

// NewContext returns a context for work that runs under l. Package lock calls
// it. If l is nil, the work runs without the lock that it asked for, and
// [FromContext] must not take one around it for that.
func NewContext(ctx context.Context, l Lock) context.Context {
	return context.WithValue(ctx, lockKey{}, l)
}

// FromContext returns the lock under which the code runs: the innermost one if
// there are several. It reports false if there is none, or if
// middleware.FailOpen let the code run without that one.
func FromContext(ctx context.Context) (Lock, bool) {
	l, ok := ctx.Value(lockKey{}).(Lock)
	return l, ok
}
