package lock

import (
	"context"
	"time"
)

// Complete records the event and its order as completed and frees the name, in
// one write. Result is kept for replay; nil when there is none to keep. It goes on
// trying for [Options.CompleteWithin], or until shortly before the deadline of the
// context given to Acquire or, where that has none within 15 minutes, until the lease
// ends: the work is done, so the time is there. A heartbeat's lease is renewed
// meanwhile. On error the name stays owned until its lease ends, because freeing it
// unrecorded would let a duplicate run: keep the work's result and report the error.
//
// A second call returns what the first one did. After Release it is [ErrReleased].
func (l *Lock) Complete(result []byte) error {
	if !l.ending.CompareAndSwap(0, completed) {
		<-l.ended
		if l.ending.Load() == released {
			return ErrReleased
		}
		return l.outcome
	}
	s := l.settlement(l.claim.Event != "" || l.claim.Order != "")
	memory := l.row.Memory
	if s.records {
		now := l.locker.wall()
		c := completion{event: l.claim.Event, order: l.claim.Order, until: now.Add(l.locker.opts.Remember), result: result, now: now}
		memory, s.forgotten, s.resultDropped = l.row.Memory.with(c, l.room())
	}
	return l.settle(s, memory)
}

func (l *Lock) room() room {
	return room{
		name: l.claim.Name, least: l.locker.opts.RememberAtLeast,
		delivery: deliveryOf(l.ctx, l.key.Name),
	}
}

// Release frees the name and records nothing, so that a redelivery runs. On error
// the name is freed by the end of its lease. After Complete it does nothing, and
// returns what Complete did.
func (l *Lock) Release() error {
	if !l.ending.CompareAndSwap(0, released) {
		<-l.ended
		return l.outcome
	}
	return l.settle(l.settlement(false), l.row.Memory)
}

// drop releases a lock that the caller never gets, and calls nobody back.
func (l *Lock) drop() {
	l.ending.Store(released)
	_, _ = l.write(l.settlement(false), l.row.Memory)
}

// settlement is the end of a lock in the making.
type settlement struct {
	sending
	began         time.Time
	records       bool // the event is recorded as completed
	forgotten     int  // so many others are not remembered any more
	resultDropped bool
}

func (l *Lock) settlement(records bool) *settlement {
	now := time.Now()
	return &settlement{sending: sending{until: l.settleUntil(now, records)}, began: now, records: records}
}

// settle works on a context of its own: the caller's may have ended, and the
// release matters most then.
func (l *Lock) settle(s *settlement, memory Memory) error {
	if l.beat != nil && !s.records { // while a completion is tried, no duplicate may get the name
		l.beat.stop()
	}
	kind, err := l.write(s, memory)
	l.observeSettled(kind, s, err)
	if kind == Released && s.resultDropped {
		l.observeSettled(ResultDropped, s, nil)
	}
	if kind == Released && s.forgotten > 0 {
		l.observeSettled(Forgotten, s, nil)
	}
	if l.beat != nil {
		l.beat.raise()
	}
	return err
}

// write sends the settlement. Also where the store panics, everything ends with it.
func (l *Lock) write(s *settlement, memory Memory) (kind Kind, err error) {
	l.outcome = ErrReleased
	defer close(l.ended)
	defer func() {
		if s.turnedAway > 0 {
			l.locker.pressed.Add(-1)
		}
		if l.beat != nil {
			l.beat.stop()
		}
		if l.cancel != nil { // the work has begun
			l.cancel()
		}
	}()
	s.shed = func(times int) bool {
		if times == 1 {
			l.locker.pressed.Add(1)
		}
		return false
	}
	request := &Settlement{Name: l.claim.Name, Token: l.claim.Token, Keep: memory.keepUntil(l.locker.wall())}
	if s.records {
		request.Memory = &memory
	}
	var row Row
	ok, err := s.send(context.WithoutCancel(l.ctx), "release", func(ctx context.Context) (ok bool, err error) {
		row, ok, err = l.locker.store.Release(ctx, request)
		return ok, err
	})
	switch {
	case err != nil && s.records:
		kind = RecordFailed
	case err != nil:
		kind = StoreFailed
	case ok || s.unsure && (!s.records || l.recorded(&row)):
		kind = Released
	default:
		kind, err = Lost, l.lostError()
	}
	l.outcome = err
	return kind, err
}

// recorded reads a refusal that follows an attempt without an answer: the row is no
// longer ours because that attempt was applied, unless it lacks what we meant to
// record. A store that does not tell the row is believed.
func (l *Lock) recorded(row *Row) bool {
	if row.unknown() {
		return true
	}
	if l.claim.Event != "" {
		return row.Memory.remembers(l.claim.Event, l.locker.wall())
	}
	return row.Memory.Top >= l.claim.Order
}

// settleUntil is how long a settlement may try. What was completed deserves all the
// time there is, less what the runtime needs to send the result; a release only saves
// time for whoever comes next. After the deadline, where nobody kills or the kill is
// late, there is a moment.
func (l *Lock) settleUntil(now time.Time, records bool) time.Time {
	deadline, within := l.timing.deadline, l.locker.opts.CompleteWithin
	until := now.Add(maxBudget)
	switch {
	case records && within > 0:
		until = now.Add(within)
	case records && !deadline.IsZero() && deadline.Sub(now) <= longestDeadline:
		until = deadline
	case records:
		until = later(until, now.Add(time.UnixMicro(l.until.Load()).Sub(l.locker.wall())))
	}
	if deadline.IsZero() {
		return until
	}
	left := deadline.Sub(now)
	if left <= 0 {
		return now.Add(maxBudget / 8)
	}
	if last := deadline.Add(-min(timeToAnswer, l.timing.reserve/2, left/2)); last.Before(until) {
		return last
	}
	return until
}
