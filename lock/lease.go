package lock

import (
	"context"
	"time"
)

// Lease describes a lock to the work that runs under it.
type Lease struct {
	// Key is the key as the caller gave it.
	Key Key
	// Fence is the fencing token. It rises with every acquisition of the name and
	// never starts again. Store it with your data, and refuse a write if a larger
	// one is already there: that stops a late holder that does not know that it has
	// lost the lock.
	Fence int64
	// Until is when the lease ends, by the wall clock. A heartbeat moves it; this
	// is its value when FromContext was called.
	Until time.Time
}

type leaseKey struct{}

// FromContext returns the lease under which the code runs: the innermost one if
// wrappers are nested. It reports false outside any lock, and where
// middleware.FailOpen let a handler run without one.
func FromContext(ctx context.Context) (Lease, bool) {
	l, ok := ctx.Value(leaseKey{}).(*Lock)
	if !ok {
		return Lease{}, false
	}
	return l.Lease(), true
}
