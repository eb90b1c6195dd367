package lock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/event/stored"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// Lock is a lock that was acquired. End it with [Lock.Complete] or
// [Lock.Release]; only the first call counts.
type Lock struct {
	locker  *Locker
	ctx     context.Context // the caller's
	clock   clock.Clock
	outer   *Lock // under which this one was acquired; nil: none
	set     *set  // with which it was acquired, and is ended; nil: none
	key     Key
	claim   driver.Claim
	row     driver.Row // as it was acquired
	timing  timing
	decided time.Time
	until   atomic.Int64 // microseconds: end of the lease as last confirmed
	// unreported is the number of requests that no observation counts, such as
	// those of a renewal that the end of the lock interrupts.
	unreported atomic.Int64

	reading sync.Mutex
	read    time.Time // the last reading of the clock; guarded by reading
	time    time.Time // the time of wall then; guarded by reading

	work   context.Context
	cancel context.CancelFunc // of work
	beat   *heartbeat         // nil with a fixed lease

	settling chan struct{} // has an element until it is known whether an attempt to end the lock did so
	ending   atomic.Int32  // how the lock ended or is being ended; 0 before that
	outcome  error         // of that
}

// How a lock ends.
const (
	completed = iota + 1
	released
	tentative // unless the answer lets the lock go on
)

func (a *acquisition) newLock() *Lock {
	l := &Lock{
		locker: a.locker, ctx: a.ctx, clock: a.clock, outer: heldIn(a.ctx), set: a.set, key: a.key, claim: a.claim, row: a.row, timing: a.timing,
		decided: a.decided, settling: make(chan struct{}, 1),
	}
	// An earlier copy of the claim, whose lease ends earlier, may have been
	// applied.
	if !l.row.Until.IsZero() && l.row.Until.Before(l.claim.Until) {
		l.claim.Until = l.row.Until
	}
	l.until.Store(l.claim.Until.UnixMicro())
	l.startTime(a.dated)
	return l
}

// chain yields the lock, and those around it that have not ended.
func (l *Lock) chain(yield func(*Lock) bool) {
	for held := l; held != nil; held = held.outer {
		if (held == l || held.ending.Load() == 0) && !yield(held) {
			return
		}
	}
}

// hasName reports whether the lock is of the name whose row is that one, though
// perhaps in another row.
func (l *Lock) hasName(row string) bool { return stored.Name(l.locker.prefix, l.key.Name) == row }

// check returns a [*LostError] if the lease, or that of a lock around it, ended
// before the work can begin.
func (l *Lock) check() error {
	for held := range l.chain {
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

// lostAt returns when the work must have ended if the lease is not renewed.
func (l *Lock) lostAt() time.Time { return time.UnixMicro(l.until.Load()).Add(-l.timing.margin) }

// wall returns the time by which the lease is asked for and judged. It runs
// with the wall clock, or with the monotonic clock while the wall clock is
// set back: the ends that a store with a clock of its own compares must be
// by one clock. The monotonic clock alone stands still while the process is
// frozen.
func (l *Lock) wall() time.Time {
	l.reading.Lock()
	defer l.reading.Unlock()
	now := l.clock.Now()
	l.time = l.time.Add(max(now.Sub(l.read), now.Round(0).Sub(l.read.Round(0))))
	l.read = now
	return l.time
}

// startTime begins the time of wall with a reading of the clock.
func (l *Lock) startTime(read time.Time) { l.read, l.time = read, read.Round(0) }

// begin makes the work's context and starts the heartbeat, if there is one.
// The heartbeats of the locks around it look at the wall clock, because their
// timers stood still if the process was frozen meanwhile.
func (l *Lock) begin() {
	ctx := context.WithValue(driver.NewContext(l.ctx, (*heldLock)(l)), heldKey{}, l)
	for held := range l.chain {
		if held.beat != nil { // this one's begins below
			held.beat.look()
		}
	}
	end, cause := l.workEnd()
	if !l.timing.renew {
		l.work, l.cancel = l.clock.WithDeadlineCause(ctx, end, cause)
		if l.timing.renewal > 0 {
			l.startOvertime()
		}
		return
	}
	ctx, lose := context.WithCancelCause(ctx)
	stop := func() {}
	if !end.IsZero() {
		ctx, stop = l.clock.WithDeadlineCause(ctx, end, cause)
	}
	l.work, l.cancel = ctx, func() { lose(nil); stop() }
	l.startHeartbeat(lose)
}

// workEnd returns when the work must end at the latest, and why: at the
// deadline less the reserve, or with the first of the fixed leases of this lock
// and those around it. The time is zero if only a lost heartbeat ends the work;
// a nil cause stands for the deadline.
func (l *Lock) workEnd() (end time.Time, cause error) {
	if !l.timing.deadline.IsZero() {
		end = l.timing.deadline.Add(-l.timing.reserve)
	}
	now := l.clock.Now()
	for held := range l.chain {
		if held.timing.lease == 0 || held.timing.renew {
			continue
		}
		if lost := now.Add(held.lostAt().Sub(held.wall())); end.IsZero() || lost.Before(end) {
			end, cause = lost, held.lostError()
		}
	}
	return end, cause
}

// Context returns the context for the work. It carries the lease, ends when the
// lease is lost (with a [*LostError] as its cause), and leaves time for the
// release before the deadline of the context given to Acquire.
func (l *Lock) Context() context.Context { return l.work }

// Lease returns the lease with its present end.
func (l *Lock) Lease() Lease {
	return Lease{Key: l.key, Fence: l.row.Fence, Until: time.UnixMicro(l.until.Load())}
}

func (l *Lock) lostError() *LostError {
	return &LostError{Key: l.key, Until: time.UnixMicro(l.until.Load())}
}
