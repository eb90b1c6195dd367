package lock

import (
	"context"
	"time"
)

// Lease is what the work under a lock may know of it.
type Lease struct {
	// Key as the caller gave it.
	Key Key
	// Fence rises with every acquisition of the name, for ever. Write it beside
	// your data, and let the write be refused when a larger one is there
	// already: that stops an owner that is late without knowing it.
	Fence int64
	// Until is when the lease ends, by the wall clock. With a heartbeat it
	// moves; this is its value when FromContext was called.
	Until time.Time
}

type leaseKey struct{}

// FromContext returns the lease under which the code runs, the innermost one
// where decorators are nested. It is false outside any lock, and where
// middleware.FailOpen let a handler run without one.
func FromContext(ctx context.Context) (Lease, bool) {
	l, ok := ctx.Value(leaseKey{}).(*Lock)
	if !ok {
		return Lease{}, false
	}
	return l.Lease(), true
}
