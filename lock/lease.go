package lock

import (
	"context"
	"time"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// Lease describes a lock to the work that runs under it.
type Lease struct {
	// Key is the key as the caller gave it.
	Key Key
	// Fence is the fencing token. It rises with every acquisition of the name, even
	// if the store has lost writes; docs/PROMISES.md says how far. Store it with
	// your data, and refuse a write if a larger one is already there: that stops a
	// late holder that does not know that it has lost the lock.
	Fence int64
	// Until is when the lease ends, by the wall clock. A heartbeat moves it; this
	// is its value when FromContext was called.
	Until time.Time
	// Interrupted tells of an earlier run of the event of whose end nothing is
	// known. Without [Options.OnInterrupted], only a run whose name this one took
	// over is known. Nil: there was none.
	Interrupted *InterruptedError
}

// FromContext returns the lease under which the code runs: the innermost one if
// there are several. It reports false outside any lock, and where
// middleware.FailOpen let a handler run without one.
func FromContext(ctx context.Context) (Lease, bool) {
	// Of a wrapper that has not got its lock, no lock around it may take the place.
	h := heldIn(ctx)
	if _, ok := driver.FromContext(ctx); !ok || h == nil {
		return Lease{}, false
	}
	return h.lease(), true
}

// Leases returns all leases under which the code runs, the innermost first:
// those of nested wrappers, and of locks that were acquired together, also once
// they have ended.
func Leases(ctx context.Context) []Lease {
	var leases []Lease
	for h := heldIn(ctx); h != nil; h = h.outer {
		leases = append(leases, h.lease())
	}
	return leases
}

// lease returns the lease with its present end.
func (h *hold) lease() Lease {
	return Lease{Key: h.key, Fence: h.row.Fence, Until: time.UnixMicro(h.until.Load()), Interrupted: h.interrupted()}
}

// heldLock is a Lock as contexts carry it. Its methods are for stores, and for
// packages of this module.
type heldLock Lock

// Store implements [driver.Lock].
func (h *heldLock) Store() driver.Store { return h.locker.store }

// Work implements [invocation.Worker].
func (h *heldLock) Work() invocation.Work {
	w := invocation.Work{Deadline: h.timing.outermost, Reserve: h.timing.reserve}
	for held := range h.chain {
		w.Repeats = w.Repeats || held.repeats
	}
	return w
}
