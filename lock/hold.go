package lock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/event/stored"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// hold is one row that is ours.
type hold struct {
	claimState
	outer    *hold        // under which this one was acquired; nil: none
	until    atomic.Int64 // microseconds: end of the lease as last confirmed
	question question
	repeats  bool // the work may always run again, although the key has an Event

	reading sync.Mutex
	read    time.Time // the last reading of the clock; guarded by reading
	time    time.Time // the time of wall then; guarded by reading

	work   context.Context // nil: the work has not begun
	end    end
	renews interface{ look() } // the heartbeat; nil: there is none
}

// question is how far Options.OnInterrupted has come.
type question int

const (
	unasked  question = iota
	asked             // it is deciding: no work has begun
	answered          // it has let the work run: earlier runs count no more
)

type heldKey struct{}

// heldIn returns the first of the rows that are held around the code, or nil.
func heldIn(ctx context.Context) *hold {
	h, _ := ctx.Value(heldKey{}).(*hold)
	return h
}

// chain yields the lock, and those around it that have not ended.
func (h *hold) chain(yield func(*hold) bool) {
	for held := h; held != nil; held = held.outer {
		if (held == h || !held.end.hasBegun()) && !yield(held) {
			return
		}
	}
}

// hasName reports whether the lock is of the name whose row in the store of l
// is that one, though perhaps in another row. Stores are told apart by what
// errors call them, because two clients may be of one table.
func (h *hold) hasName(l *Locker, row string) bool {
	return h.locker.storeName == l.storeName && stored.Name(h.locker.prefix, h.key.Name) == row
}

// check returns a [*LostError] if the lease, or that of a lock around it, ended
// before the work can begin.
func (h *hold) check() error {
	for held := range h.chain {
		var lost *LostError
		if held.work != nil && errors.As(context.Cause(held.work), &lost) {
			return lost
		}
		if !held.wall().Before(held.lostAt()) {
			return held.lostError()
		}
	}
	return nil
}

// interrupted is what the caller is told of interruptedRun; nil: there is none.
func (h *hold) interrupted() *InterruptedError {
	run := h.interruptedRun()
	if run == nil {
		return nil
	}
	return &InterruptedError{Key: h.key, Holder: run.Holder, Since: run.Since}
}

// interruptedRun returns the earlier run of the event of whose end nothing is
// known, or nil.
func (h *hold) interruptedRun() *driver.InterruptedEvent {
	switch {
	case h.claim.Event == "":
		return nil
	case h.isOnlyTold():
		return &h.row.Previous
	}
	return h.row.Memory.FindInterrupted(h.claim.Event, h.claim.Now)
}

// isOnlyTold reports whether the dead owner had the event and has not asked to
// keep it, so that nothing but the answer to the claim tells of its run.
func (h *hold) isOnlyTold() bool {
	p := &h.row.Previous
	return p.Event == h.claim.Event && h.claim.Now.Sub(p.Since) < h.locker.remember(h.ctx) && h.row.Memory.FindInterrupted(p.Event, h.claim.Now) == nil
}

// remember returns Options.Remember, or its default for a lock acquired in ctx.
func (l *Locker) remember(ctx context.Context) time.Duration {
	if chosen := l.opts.Remember; chosen > 0 {
		return chosen
	}
	longest := max(DefaultRemember, invocation.RememberOf(ctx))
	for outer := heldIn(ctx); outer != nil; outer = outer.outer {
		longest = max(longest, outer.locker.opts.Remember)
	}
	return longest
}

// lostAt returns when the work must have ended if the lease is not renewed.
func (h *hold) lostAt() time.Time { return time.UnixMicro(h.until.Load()).Add(-h.timing.margin) }

// wall returns the time by which the lease is asked for and judged. It runs
// with the wall clock, or with the monotonic clock while the wall clock is
// set back: the ends that a store with a clock of its own compares must be
// by one clock. The monotonic clock alone stands still while the process is
// frozen.
func (h *hold) wall() time.Time {
	h.reading.Lock()
	defer h.reading.Unlock()
	now := h.clock.Now()
	h.time = h.time.Add(max(now.Sub(h.read), now.Round(0).Sub(h.read.Round(0))))
	h.read = now
	return h.time
}

// workEnd returns when the work must end at the latest, and why: at the
// deadline less the reserve, or with the first of the fixed leases of this lock
// and those around it. The time is zero if only a lost heartbeat ends the work;
// a nil cause stands for the deadline.
func (h *hold) workEnd() (end time.Time, cause error) {
	if !h.timing.deadline.IsZero() {
		end = h.timing.deadline.Add(-h.timing.reserve)
	}
	now := h.clock.Now()
	for held := range h.chain {
		if held.timing.lease == 0 || held.timing.renew {
			continue
		}
		if lost := now.Add(held.lostAt().Sub(held.wall())); end.IsZero() || lost.Before(end) {
			end, cause = lost, held.lostError()
		}
	}
	return end, cause
}

func (h *hold) lostError() *LostError {
	return &LostError{Key: h.key, Until: time.UnixMicro(h.until.Load())}
}
