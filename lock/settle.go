package lock

import (
	"context"
	"time"
)

// Complete records the event and its order as completed and frees the name, in
// one write. Result is kept for replay; nil when there is none to keep. It goes on
// trying until shortly before the deadline of the context given to Acquire or, where
// that has none, until the lease ends: the work is done, so the time is there. On
// error the name stays owned until its lease ends, because freeing it unrecorded would
// let a duplicate run: keep the work's result and report the error.
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
	now := time.Now()
	memory, s := l.row.Memory, settlement{began: now, until: l.settleUntil(now, true)}
	if l.claim.Event != "" || l.claim.Order != "" {
		wall := l.locker.wall()
		c := completion{event: l.claim.Event, order: l.claim.Order, until: wall.Add(l.locker.opts.Remember), result: result, now: wall}
		memory, s.forgotten, s.resultDropped = l.row.Memory.with(c, l.room())
		s.records = true
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
	now := time.Now()
	return l.settle(settlement{began: now, until: l.settleUntil(now, false)}, l.row.Memory)
}

// drop releases a lock that the caller never gets, and calls nobody back.
func (l *Lock) drop() {
	l.ending.Store(released)
	s := settlement{sending: sending{until: l.settleUntil(time.Now(), false)}}
	_, l.outcome = s.write(l, l.row.Memory)
	close(l.ended)
}

// settlement is the end of a lock in the making.
type settlement struct {
	sending
	began         time.Time
	until         time.Time
	records       bool // the event is recorded as completed
	forgotten     int  // so many others are not remembered any more
	resultDropped bool
}

// settle works on a context of its own: the caller's may have ended, and the
// release matters most then.
func (l *Lock) settle(s settlement, memory Memory) error {
	if l.beat != nil {
		l.beat.stop()
	}
	s.sending.until = s.until
	kind, err := s.write(l, memory)
	l.outcome = err
	close(l.ended)
	l.cancel()
	l.observeSettled(kind, &s, err)
	if kind == Released && s.resultDropped {
		l.observeSettled(ResultDropped, &s, nil)
	}
	if kind == Released && s.forgotten > 0 {
		l.observeSettled(Forgotten, &s, nil)
	}
	if l.beat != nil {
		l.beat.raise()
	}
	return err
}

// write sends the settlement, and reads the answer.
func (s *settlement) write(l *Lock, memory Memory) (Kind, error) {
	request := &Settlement{Name: l.claim.Name, Token: l.claim.Token, Keep: memory.keepUntil(l.locker.wall())}
	if s.records {
		request.Memory = &memory
	}
	s.shed = func(times int) bool {
		if times == 1 {
			l.locker.pressed.Add(1)
		}
		return false
	}
	defer func() {
		if s.turnedAway > 0 {
			l.locker.pressed.Add(-1)
		}
	}()
	var row Row
	ok, err := s.send(context.WithoutCancel(l.ctx), "release", func(ctx context.Context) (ok bool, err error) {
		row, ok, err = l.locker.store.Release(ctx, request)
		return ok, err
	})
	switch {
	case err != nil && s.records:
		return RecordFailed, err
	case err != nil:
		return StoreFailed, err
	case ok || s.unsure && (!s.records || l.recorded(&row)):
		return Released, nil
	}
	return Lost, l.lostError()
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
// time there is; a release only saves time for whoever comes next. After the deadline
// there may still be a moment before the kill.
func (l *Lock) settleUntil(now time.Time, completes bool) time.Time {
	until := now.Add(maxBudget)
	if completes {
		until = later(until, now.Add(time.UnixMicro(l.until.Load()).Sub(l.locker.wall())))
	}
	if d := l.timing.deadline; !d.IsZero() && d.Add(-timeToAnswer).Before(until) {
		until = d.Add(-timeToAnswer)
	}
	return later(until, now.Add(maxBudget/8))
}
