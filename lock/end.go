package lock

import (
	"context"
	"sync/atomic"
)

// How a lock ends.
const (
	completed = iota + 1
	released
	tentative // unless the answer lets the lock go on
)

// end is how a lock, or several together, ended. Only the first end counts.
type end struct {
	how     atomic.Int32  // 0: it has not ended, and is not being ended
	busy    chan struct{} // has an element while it is being ended
	outcome error         // what the end returned
}

func newEnd() end { return end{busy: make(chan struct{}, 1)} }

// begin reports whether the caller is the one that ends it; then finish must
// follow. If not, it returns once the outcome is known.
func (e *end) begin(how int32) bool {
	e.busy <- struct{}{}
	if e.how.CompareAndSwap(0, how) {
		return true
	}
	<-e.busy
	return false
}

// goOn takes back an end that has begun.
func (e *end) goOn() {
	e.how.Store(0)
}

// finish lets others see the outcome.
func (e *end) finish() { <-e.busy }

// hasBegun reports whether it has ended or is being ended.
func (e *end) hasBegun() bool { return e.how.Load() != 0 }

// hasEnded is like hasBegun, and waits until the fate of a tentative end is
// known, or until ctx, which is the heartbeat's, ends: those who stop the
// heartbeat may hold what it waits for.
func (e *end) hasEnded(ctx context.Context) bool {
	if e.how.Load() == tentative {
		select {
		case e.busy <- struct{}{}:
			defer e.finish()
		case <-ctx.Done():
			return true
		}
	}
	return e.hasBegun()
}
