package lock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Lock is a lock that was acquired. End it with [Lock.Complete] or
// [Lock.Release]; whichever is called first counts.
type Lock struct {
	locker   *Locker
	parent   context.Context
	key      Key
	claim    Claim
	timing   timing
	fence    int64
	memory   Memory
	acquired time.Time

	work    bounded
	until   atomic.Int64 // microseconds: end of the lease as last confirmed
	beat    *heartbeat   // nil without a heartbeat
	settled sync.Once
}

func (l *Lock) begin() {
	l.until.Store(l.claim.Until.UnixMicro())
	l.work = bounded{parent: l.parent, lock: l}
	if !l.timing.deadline.IsZero() {
		l.work.deadline = l.timing.deadline.Add(-l.timing.reserve)
	}
	if l.timing.renew {
		l.work.parent, l.beat = l.startHeartbeat(l.parent)
		return
	}
	if lost := l.claim.Until.Add(-l.timing.margin); l.timing.lease > 0 && (l.work.deadline.IsZero() || lost.Before(l.work.deadline)) {
		l.work.deadline, l.work.cause = lost, l.lostError()
	}
}

// Context is for the work: it carries the lease, ends when the lease is lost
// (with a [*LostError] as its cause), and leaves time for the release before
// the deadline of the context given to Acquire.
func (l *Lock) Context() context.Context { return &l.work }

// Lease tells the work under which lock it runs.
func (l *Lock) Lease() Lease {
	return Lease{Key: l.key, Fence: l.fence, Until: time.UnixMicro(l.until.Load())}
}

// Complete records the event and its order as completed and frees the name, in
// one write. Result is kept for replay; nil when there is none to keep. On error
// the name stays owned until its lease ends, because freeing it unrecorded would
// let a duplicate run: the work is done, so keep its result and report the error.
func (l *Lock) Complete(result []byte) error {
	done := Completed{Event: l.claim.Event, Until: time.Now().Add(l.locker.opts.Remember).Truncate(time.Millisecond)}
	if done.Event == "" && l.claim.Order == "" {
		return l.settle(nil, result)
	}
	var r Result
	if result != nil && done.Event != "" {
		r = Result{Event: done.Event, Body: result}
	}
	m := l.memory.with(done, l.claim.Order, r, time.Now())
	return l.settle(&m, result)
}

// Release frees the name and records nothing, so that a redelivery runs. On error
// the name is freed by the end of its lease.
func (l *Lock) Release() error { return l.settle(nil, nil) }

func (l *Lock) settle(memory *Memory, result []byte) (err error) {
	l.settled.Do(func() { err = l.settleOnce(memory, result) })
	return err
}

// settleOnce works on a context of its own: the caller's may have ended, and the
// release matters most then.
func (l *Lock) settleOnce(memory *Memory, result []byte) error {
	if l.beat != nil {
		l.beat.stop()
	}
	l.work.stop()
	began := time.Now()
	keep := l.claim.Keep
	if memory != nil {
		for _, c := range memory.Done {
			if c.Until.After(keep) {
				keep = c.Until
			}
		}
	}
	settlement := Settlement{Name: l.claim.Name, Token: l.claim.Token, Memory: memory, Keep: keep, Stamp: l.claim.Stamp}
	var row Row
	s := sending{op: "release", until: l.releaseUntil(began)}
	ok, err := s.send(context.WithoutCancel(l.parent), func(ctx context.Context) (ok bool, err error) {
		row, ok, err = l.locker.store.Release(ctx, &settlement)
		return ok, err
	})
	o := l.observation(began, s.requests)
	switch {
	case err == nil && !ok && !(s.unsure && l.settledBefore(&row, memory)):
		err = l.lostError()
		o.Kind = Lost
	case err != nil && memory != nil:
		o.Kind = RecordFailed
	case err != nil:
		o.Kind = StoreFailed
	default:
		o.Kind, o.Recorded = Released, memory != nil
	}
	o.Err = err
	l.locker.emit(l.parent, o)
	if ok && memory != nil && result != nil && row.Memory.Result.Event != l.claim.Event {
		o.Kind = ResultDropped
		l.locker.emit(l.parent, o)
	}
	return err
}

// settledBefore reads a refusal that follows an attempt without an answer: the row
// is no longer ours because that attempt was applied, unless it lacks what we
// meant to record.
func (l *Lock) settledBefore(row *Row, memory *Memory) bool {
	return memory == nil || l.claim.Event == "" || row.unknown() || row.Memory.remembers(l.claim.Event, time.Now())
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
	return &LostError{Key: l.key, Until: time.UnixMicro(max(l.until.Load(), l.claim.Until.UnixMicro()))}
}
