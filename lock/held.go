package lock

import (
	"context"
	"sync/atomic"
	"time"
)

// Lock is a lock that was acquired. End it with [Lock.Complete] or
// [Lock.Release]; whichever is called first counts.
type Lock struct {
	acquisition
	work       bounded
	until      atomic.Int64 // microseconds: end of the lease as last confirmed
	beat       *heartbeat   // nil without one
	settled    atomic.Bool
	settling   sending
	settlement Settlement
}

// begin makes the context of the work, unless the lease is over already.
func (l *Lock) begin() error {
	// A repeated claim may have been applied by its first copy, whose lease ends earlier.
	if !l.row.Until.IsZero() && l.row.Until.Before(l.claim.Until) {
		l.claim.Until = l.row.Until
	}
	l.until.Store(l.claim.Until.UnixMicro())
	lost := l.claim.Until.Add(-l.timing.margin)
	if !l.decided.Round(0).Before(lost) {
		_ = l.Release() // settle reports it
		return l.lostError()
	}
	l.work.parent, l.work.lock = l.ctx, l
	if !l.timing.deadline.IsZero() {
		l.work.deadline = l.timing.deadline.Add(-l.timing.reserve)
	}
	switch {
	case l.timing.renew:
		l.work.parent, l.beat = l.startHeartbeat(l.ctx)
	case l.timing.lease > 0 && (l.work.deadline.IsZero() || lost.Before(l.work.deadline)):
		l.work.deadline, l.work.cause = lost, l.lostError()
	}
	return nil
}

// Context is for the work: it carries the lease, ends when the lease is lost
// (with a [*LostError] as its cause), and leaves time for the release before
// the deadline of the context given to Acquire.
func (l *Lock) Context() context.Context { return &l.work }

// Lease tells the work under which lock it runs.
func (l *Lock) Lease() Lease {
	return Lease{Key: l.key, Fence: l.row.Fence, Until: time.UnixMicro(l.until.Load())}
}

// Complete records the event and its order as completed and frees the name, in
// one write. Result is kept for replay; nil when there is none to keep. On error
// the name stays owned until its lease ends, because freeing it unrecorded would
// let a duplicate run: the work is done, so keep its result and report the error.
func (l *Lock) Complete(result []byte) error {
	if !l.settled.CompareAndSwap(false, true) {
		return nil
	}
	now := time.Now()
	if l.claim.Event == "" && l.claim.Order == "" {
		return l.settle(now, nil, false)
	}
	done := Completed{Event: l.claim.Event, Until: now.Add(l.locker.opts.Remember).Truncate(time.Millisecond)}
	var r Result
	if result != nil && done.Event != "" {
		r = Result{Event: done.Event, Body: result}
	}
	m := l.row.Memory.with(done, l.claim.Order, r, now)
	return l.settle(now, &m, r.Event != "")
}

// Release frees the name and records nothing, so that a redelivery runs. On error
// the name is freed by the end of its lease.
func (l *Lock) Release() error {
	if !l.settled.CompareAndSwap(false, true) {
		return nil
	}
	return l.settle(time.Now(), nil, false)
}

// settle works on a context of its own: the caller's may have ended, and the
// release matters most then.
func (l *Lock) settle(began time.Time, memory *Memory, withResult bool) error {
	if l.beat != nil {
		l.beat.stop()
	}
	l.work.stop()
	l.settlement = Settlement{Name: l.claim.Name, Token: l.claim.Token, Memory: memory, Keep: l.claim.Keep, Stamp: l.claim.Stamp}
	if memory != nil {
		for _, c := range memory.Done {
			if c.Until.After(l.settlement.Keep) {
				l.settlement.Keep = c.Until
			}
		}
	}
	l.settling.until, l.settling.detached = l.releaseUntil(began), true
	ok, err := l.settling.send("release", l.ctx, began, func(ctx context.Context) (ok bool, err error) {
		var row Row
		row, ok, err = l.locker.store.Release(ctx, &l.settlement)
		l.keepMemory(&row)
		return ok, err
	})
	kind := Released
	switch {
	case err == nil && !ok && !l.settledBefore(memory):
		kind, err = Lost, l.lostError()
	case err != nil && memory != nil:
		kind = RecordFailed
	case err != nil:
		kind = StoreFailed
	}
	l.observeSettled(kind, began, memory != nil && kind == Released, err)
	if ok && withResult && l.row.Memory.Result.Event != l.claim.Event {
		l.observeSettled(ResultDropped, began, true, nil)
	}
	return err
}

// keepMemory takes over what a release says of the row. The fence stays that of
// the acquisition.
func (l *Lock) keepMemory(row *Row) {
	l.row.Since, l.row.Memory = row.Since, row.Memory
}

// settledBefore reads a refusal that follows an attempt without an answer: the row
// is no longer ours because that attempt was applied, unless it lacks what we
// meant to record.
func (l *Lock) settledBefore(memory *Memory) bool {
	return l.settling.unsure &&
		(memory == nil || l.claim.Event == "" || l.row.unknown() || l.row.Memory.remembers(l.claim.Event, time.Now()))
}

// releaseUntil leaves all the time there is, within reason, to record what was
// done. After the deadline there may still be a moment before the kill.
func (l *Lock) releaseUntil(now time.Time) time.Time {
	until := now.Add(maxBudget)
	if d := l.timing.deadline; !d.IsZero() && d.Before(until) {
		until = d
	}
	if least := now.Add(maxBudget / 8); until.Before(least) {
		return least
	}
	return until
}

func (l *Lock) lostError() *LostError {
	return &LostError{Key: l.key, Until: time.UnixMicro(l.until.Load())}
}
