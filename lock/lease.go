package lock

import (
	"context"
	"time"
)

// Lease is what work under a lock may know about it.
type Lease struct {
	// Key is the key as the caller gave it.
	Key Key
	// Fence rises with every acquisition of the name, for ever. Write it beside
	// your data, and have the write refused if a larger one is already there:
	// that stops a holder that is late without knowing it.
	Fence int64
	// Until is when the lease ends, by the wall clock. With a heartbeat it moves;
	// this is its value when FromContext was called.
	Until time.Time
}

type leaseKey struct{}

// FromContext returns the lease under which the code runs: the innermost one if
// decorators are nested. It reports false outside any lock, and where
// middleware.FailOpen let a handler run without one.
func FromContext(ctx context.Context) (Lease, bool) {
	l, ok := ctx.Value(leaseKey{}).(*Lock)
	if !ok {
		return Lease{}, false
	}
	return l.Lease(), true
}
