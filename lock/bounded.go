package lock

import (
	"context"
	"sync"
	"time"
)

// bounded is context.WithDeadlineCause for callees that mostly return before
// they ask for Done: timer and channel are made when somebody does. Two such
// contexts stand in the way of every invocation, and most never need one.
type bounded struct {
	parent   context.Context
	deadline time.Time // zero: none of its own
	detached bool      // does not end with the parent
	cause    error     // of the end at deadline; nil: context.DeadlineExceeded
	lock     *Lock     // what FromContext finds; nil: what the parent holds

	mu      sync.Mutex
	stopped bool
	inner   context.Context
	cancel  context.CancelFunc
}

func (b *bounded) Deadline() (time.Time, bool) {
	d, ok := b.parent.Deadline()
	if b.detached {
		return b.deadline, true
	}
	if b.deadline.IsZero() || ok && d.Before(b.deadline) {
		return d, ok
	}
	return b.deadline, true
}

func (b *bounded) Done() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.start().Done()
}

func (b *bounded) start() context.Context {
	if b.inner != nil {
		return b.inner
	}
	parent := b.parent
	if b.detached {
		parent = context.WithoutCancel(parent)
	}
	if b.deadline.IsZero() {
		b.inner, b.cancel = context.WithCancel(parent)
	} else {
		b.inner, b.cancel = context.WithDeadlineCause(parent, b.deadline, b.cause)
	}
	if b.stopped {
		b.cancel()
	}
	return b.inner
}

func (b *bounded) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inner == nil {
		// An attempt that nobody waits for is not held up either: spare the clock.
		over := b.lock != nil && !b.deadline.IsZero() && !time.Now().Before(b.deadline)
		if !b.stopped && !over && (b.detached || b.parent.Err() == nil) {
			return nil
		}
	}
	return b.start().Err()
}

func (b *bounded) Value(key any) any {
	if key == (leaseKey{}) && b.lock != nil {
		return b.lock
	}
	b.mu.Lock()
	inner := b.inner
	if b.cause != nil {
		inner = b.start() // context.Cause asks through Value
	}
	b.mu.Unlock()
	if inner != nil {
		return inner.Value(key)
	}
	return b.parent.Value(key)
}

func (b *bounded) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	if b.cancel != nil {
		b.cancel()
	}
}
