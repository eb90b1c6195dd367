package lock

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// Lock is a lock that was acquired, or several. End it with [Lock.Complete], or
// with [Lock.Fail] if the work has failed, or with [Lock.Release] if it has not
// begun; only the first call counts.
type Lock struct {
	hold
	set *set // with which it was acquired, and is ended; nil: none
	// unreported is the number of requests that no observation counts, such as
	// those of a renewal that the end of the lock interrupts.
	unreported atomic.Int64

	cancel context.CancelFunc // of work
	beat   *heartbeat         // nil with a fixed lease
}

// acquire reports what becomes of ask, which returns nil once the claim owns a
// row.
func (a *acquisition) acquire(ask func() error) (*Lock, error) {
	err := ask()
	if err != nil && a.requests.unsure {
		a.abandon()
	}
	if err != nil && a.after != nil && (errors.Is(err, ErrLost) || errors.As(err, new(*StoreError))) {
		err = cmp.Or(a.after.check(), err) // it was lost meanwhile
	}
	a.decided = a.clock.Now()
	var lk *Lock
	unused := false
	if err == nil {
		lk, unused = a.newLock(), true
		// If the caller does not get the Lock, for example because an observer panics,
		// the name must not stay held.
		defer func() {
			if unused {
				lk.drop()
			}
		}()
		if err = lk.check(); err != nil {
			unused = false
			a.requests.sent += lk.drop()
		}
	}
	a.report(err)
	if err != nil {
		return nil, err
	}
	lk.begin()
	unused = false
	return lk, nil
}

func (a *acquisition) newLock() *Lock {
	l := &Lock{hold: hold{claimState: a.claimState, outer: heldIn(a.ctx), end: newEnd()}}
	l.read, l.time = a.dated, a.dated.Round(0)
	// An earlier copy of the claim, whose lease ends earlier, may have been
	// applied.
	if !l.row.Until.IsZero() && l.row.Until.Before(l.claim.Until) {
		l.claim.Until = l.row.Until
	}
	l.until.Store(l.claim.Until.UnixMicro())
	return l
}

// begin makes the work's context and starts the heartbeat, if there is one.
// The heartbeats of the locks around it look at the wall clock, because their
// timers stood still if the process was frozen meanwhile.
func (l *Lock) begin() {
	ctx := context.WithValue(driver.NewContext(l.ctx, (*heldLock)(l)), heldKey{}, &l.hold)
	for held := range l.chain {
		if held.renews != nil { // this one's begins below
			held.renews.look()
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

// Context returns the context for the work. It carries the lease, ends when the
// lease is lost (with a [*LostError] as its cause), and leaves time for the
// release before the deadline of the context given to Acquire.
func (l *Lock) Context() context.Context { return l.work }

// Lease returns the lease with its present end.
func (l *Lock) Lease() Lease { return l.lease() }
