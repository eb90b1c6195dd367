package lock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// Complete marks the event and its order as completed and releases the name, in
// one write; a key that has neither is only released. It retries for
// [Options.CompleteWithin] or, if that is zero, until shortly before the
// deadline of the context given to Acquire; without a deadline within 90
// minutes, until the lease ends, and for at least 2 s.
//
// After an error the name stays held until its lease ends, because a release
// would let a duplicate run: keep the work's result and report the error. A
// second call returns what the first call returned. After Release it returns
// [ErrReleased].
func (l *Lock) Complete() error { return l.CompleteWith(Completion{}) }

// CompleteWith does what [Lock.Complete] does, and keeps what c says.
func (l *Lock) CompleteWith(c Completion) error {
	if l.set != nil {
		return l.set.complete(c)
	}
	tell, err := l.complete(c, time.Time{})
	tell()
	return err
}

// complete completes the event. It tries until limit if that is not zero and
// comes first. The caller must call tell when observers may end locks.
func (l *Lock) complete(c Completion, limit time.Time) (tell func(), err error) {
	if !l.beginEnd(completed) {
		return func() {}, l.completedBefore()
	}
	return l.settle(l.completion(c).endBy(limit))
}

// Release releases the name without completing the event, so that a later
// delivery runs. It does so after the lock's context has ended, too. After an
// error the name is free once its lease ends. After Complete it does nothing
// and returns what Complete returned.
//
// It is for work that has not begun: an event that was interrupted stays so.
// For work that has begun and failed, call [Lock.Fail]. Release cannot know
// whether the work has begun, so [Options.HoldAtLeast] counts.
func (l *Lock) Release() error { return l.releaseAfter(unsaid) }

// Fail is [Lock.Release] for work that has failed with err, or has panicked if
// err is nil. With [Options.OnInterrupted] the event then counts as interrupted
// only if err wraps [ErrUnknown], or if the context of the work has ended or
// its lease is lost: the work may have been cut short, at its deadline for
// example, and cannot tell whether it has had its effect.
func (l *Lock) Fail(err error) error {
	if errors.Is(err, invocation.ErrUnbegun) {
		return l.releaseAfter(unbegun)
	}
	// In a process that was frozen, the context does not know yet that the lease is
	// lost.
	if errors.Is(err, ErrUnknown) || l.Context().Err() != nil || l.check() != nil {
		return l.releaseAfter(unknown)
	}
	return l.releaseAfter(failed)
}

// releaseAfter releases the lock, and those that were acquired with it.
func (l *Lock) releaseAfter(work progress) error {
	if l.set != nil {
		return l.set.release(work)
	}
	tell, err := l.release(time.Time{}, work)
	tell()
	return err
}

// release releases the name, after a cooldown unless the work is known not to
// have begun. It tries until limit if that is not zero and comes first. The
// caller must call tell as for complete.
func (l *Lock) release(limit time.Time, work progress) (tell func(), err error) {
	if !l.beginEnd(released) {
		return func() {}, l.end.outcome
	}
	s := l.settlement(false).endBy(limit)
	s.request.Memory = l.memoryAfter(work)
	if work != unbegun {
		l.coolDown(&s.request)
	}
	return l.settle(s)
}

// drop releases a lock that the caller does not get, and reports nothing. It
// returns the number of requests.
func (l *Lock) drop() int {
	l.beginEnd(released)
	s := l.settlement(false)
	s.request.Memory = l.memoryAfter(unbegun)
	_, _ = l.write(s)
	return s.sent
}

// beginEnd reports whether the caller is the one that ends the lock. If so,
// write must follow. If not, it returns once the outcome is known.
func (l *Lock) beginEnd(how int32) bool {
	if l.end.begin(how) {
		return true
	}
	if l.beat != nil {
		l.beat.join() // an observer that it called may have ended the lock
	}
	return false
}

// completedBefore returns what Complete returns for a lock that has ended.
func (l *Lock) completedBefore() error {
	if l.end.how.Load() == released {
		return ErrReleased
	}
	return l.end.outcome
}

// settlement is the state of an attempt to end a lock.
type settlement struct {
	retries
	ctx     context.Context
	request driver.Settlement
	// transaction sends the request together with other writes. Nil: it is sent to
	// the store.
	transaction func(context.Context, *driver.Settlement) (driver.Row, bool, error)
	// goesOn returns why the lock goes on after that answer, or nil if it has
	// ended. Nil: whatever the answer is, the lock has ended.
	goesOn func(ok bool, err error) error

	row           driver.Row // that the store answered with
	began, ended  time.Time
	completes     bool      // the event becomes completed
	remembered    time.Time // the row then has the event until that time
	forgotten     int       // how many other events are forgotten
	resultDropped bool
}

// settlement does not use the caller's context, which may have ended: then the
// release matters most.
func (l *Lock) settlement(completes bool) *settlement {
	now := l.clock.Now()
	s := &settlement{
		retries: retries{locker: l.locker, clock: l.clock, until: l.settleUntil(now, completes), onThrottle: (*Locker).notePressure},
		ctx:     context.WithoutCancel(l.ctx),
		request: driver.Settlement{Name: l.claim.Name, Token: l.claim.Token, Stamp: l.row.Stamp},
		began:   now, completes: completes,
	}
	if r, _ := invocation.RecordClaimOf(l.ctx); r != nil {
		s.pace = r.Pace
	}
	return s
}

// endBy shortens the time for the attempt.
func (s *settlement) endBy(limit time.Time) *settlement {
	if !limit.IsZero() && limit.Before(s.until) {
		s.until = limit
	}
	return s
}

func (l *Lock) completion(c Completion) *settlement {
	s := l.settlement(l.claim.Event != "" || l.claim.Order != "")
	if s.completes {
		now := clock.Wall(l.clock)
		remember := min(cmp.Or(max(c.Remember, 0), l.locker.remember(l.ctx)), longestRemember)
		s.remembered = now.Add(remember).Truncate(time.Millisecond)
		event := completion{event: l.claim.Event, order: l.claim.Order, payload: l.claim.Payload, until: s.remembered, result: c.Result, now: now}
		s.request.Memory, s.forgotten, s.resultDropped = complete(&l.row.Memory, event, l.locker.roomFor(l.ctx, l.key, l.claim.Name))
	}
	l.coolDown(&s.request)
	return s
}

// op is what errors and observations call the operation.
func (s *settlement) op() string {
	if s.completes {
		return "complete"
	}
	return "release"
}

// sendOnce is one attempt.
func (s *settlement) sendOnce(ctx context.Context) (ok bool, err error) {
	if s.transaction != nil {
		s.row, ok, err = s.transaction(ctx, &s.request)
	} else {
		s.row, ok, err = s.locker.store.Settle(ctx, &s.request)
	}
	return ok, err
}

// settle sends the settlement. What it returns tells how that ended.
func (l *Lock) settle(s *settlement) (func(), error) {
	outcome, err := l.write(s)
	s.ended = l.clock.Now()
	return func() { l.tell(outcome, s, err) }, err
}

// tell reports how a settlement ended.
func (l *Lock) tell(outcome Outcome, s *settlement, err error) {
	if outcome == "" { // nothing to report
		return
	}
	l.observeSettled(outcome, s, err)
	if outcome == OutcomeReleased && s.resultDropped {
		l.locker.report(l.ctx, l.observation(OutcomeResultDropped, s.began, 0, nil))
	}
	if outcome == OutcomeReleased && s.forgotten > 0 {
		o := l.observation(OutcomeForgotten, s.began, 0, nil)
		o.Forgotten = s.forgotten
		l.locker.report(l.ctx, o)
	}
	if l.beat != nil {
		l.beat.raise()
	}
}

// write sends the settlement. Heartbeat and context end with it, even if the
// store panics. The outcome is empty if the lock goes on.
func (l *Lock) write(s *settlement) (outcome Outcome, err error) {
	goesOn := false
	defer l.end.finish() // after endWork, so that a second caller finds nothing running
	defer func() {
		if s.throttled > 0 {
			l.locker.pressed.Add(-1)
		}
		switch {
		case !goesOn:
			l.endWork()
		case l.timing.renew:
			l.watch()
		}
	}()
	if l.beat != nil && !s.completes && s.transaction == nil { // until it is completed, no duplicate may get the name
		l.beat.stop()
	}
	l.end.outcome = ErrReleased
	memory := cmp.Or(s.request.Memory, &l.row.Memory)
	used := later(clock.Wall(l.clock), s.request.Until)
	s.request.DeleteAfter = memory.KeepUntil(used, l.locker.remember(l.ctx))
	ok, err := s.send(s.ctx, s.op(), s.sendOnce)
	if s.goesOn != nil {
		if why := s.goesOn(ok, err); why != nil {
			goesOn = true
			l.end.goOn()
			l.unreported.Add(int64(s.sent))
			return "", why
		}
	}
	outcome, err = l.ended(s, ok, err)
	l.end.outcome = err
	return outcome, err
}

// ended returns how an attempt to end the lock ended.
func (l *Lock) ended(s *settlement, ok bool, err error) (Outcome, error) {
	switch {
	case err != nil && (s.completes || s.transaction != nil):
		return OutcomeCompleteFailed, err
	case err != nil:
		return OutcomeStoreFailed, err
	case ok || s.unsure && l.wasApplied(s):
		return OutcomeReleased, nil
	}
	return OutcomeLost, l.lostError()
}

// endWork ends the heartbeat and the context of the work.
func (l *Lock) endWork() {
	if l.beat != nil {
		l.beat.stop()
	}
	if l.cancel != nil { // the work has begun
		l.cancel()
	}
}

// wasApplied reports whether a refusal means that an earlier attempt without an
// answer was applied: then the row remembers the event until the very time that
// this lock has chosen, and not another run. An order does not tell who
// completed it; the fence does, while nobody has taken the name over. If the
// store cannot tell the row, the attempt is assumed to be applied; but not if
// there is no row, because the store has lost it. About a transaction nothing
// is assumed, because other writes depend on it.
func (l *Lock) wasApplied(s *settlement) bool {
	switch {
	case s.row.Untold && s.goesOn != nil: // the row may have refused it for that reason
		return false
	case !s.completes || s.row.Untold:
		return s.transaction == nil
	case l.claim.Event != "":
		return slices.ContainsFunc(s.row.Memory.Completed, func(c driver.CompletedEvent) bool {
			return c.Event == l.claim.Event && c.Until.Equal(s.remembered)
		})
	case s.transaction != nil:
		return s.row.Memory.HighestOrder == l.claim.Order && s.row.Fence == l.row.Fence
	}
	return s.row.Memory.HighestOrder >= l.claim.Order
}
