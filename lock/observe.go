package lock

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/lambdalock/lambdalock/internal/event/printable"
)

// report reports the outcome.
func (a *acquisition) report(err error) {
	switch {
	case err != nil && a.requests.pace != nil && a.requests.throttled > 0:
		a.observe(OutcomeRequeued, err)
	case err != nil:
		a.observe(outcomeOf(err), err)
	case a.row.Previous.Holder != "":
		a.observe(OutcomeTakenOver, nil)
	default:
		a.observe(OutcomeAcquired, nil)
	}
}

func (a *acquisition) observe(outcome Outcome, err error) {
	if a.locker.silent(a.ctx, outcome) {
		return
	}
	o := Observation{
		Outcome: outcome, Op: "acquire", Key: a.key, Fence: a.row.Fence, Until: a.row.Until,
		Began: a.began, Duration: a.decided.Sub(a.began), Waited: a.waited, Requests: a.requests.sent, Err: err,
	}
	switch outcome {
	case OutcomeTakenOver:
		o.Holder = a.row.Previous.Holder
	case OutcomeHeld, OutcomeCoalesced:
		var held *HeldError
		o.Holder, o.Duplicate = a.row.Holder, errors.As(err, &held) && held.Duplicate
	}
	a.locker.report(a.ctx, o)
}

func (l *Lock) observeSettled(outcome Outcome, s *settlement, err error) {
	if l.locker.silent(l.ctx, outcome) {
		return
	}
	o := l.observation(outcome, s.began, s.sent, err)
	o.Op = s.op()
	o.Requests += int(l.unreported.Swap(0))
	o.Duration, o.HeldFor = s.ended.Sub(s.began), s.ended.Sub(l.decided) // of a set, others ended after it
	o.Completed = s.completes && err == nil
	l.locker.report(l.ctx, o)
}

// observeBeside reports a further outcome of the end of the lock.
func (l *Lock) observeBeside(outcome Outcome, s *settlement, err error) {
	if l.locker.silent(l.ctx, outcome) {
		return
	}
	o := l.observation(outcome, s.began, 0, err)
	if outcome == OutcomeForgotten {
		o.Forgotten = s.forgotten
	}
	l.locker.report(l.ctx, o)
}

// observeNow reports an outcome between the beginning and the end of the lock.
func (l *Lock) observeNow(outcome Outcome, err error) {
	if !l.locker.silent(l.ctx, outcome) {
		l.locker.report(l.ctx, l.observation(outcome, l.clock.Now(), 0, err))
	}
}

// observation returns what all outcomes of an acquired lock have.
func (l *Lock) observation(outcome Outcome, began time.Time, requests int, err error) Observation {
	now := l.clock.Now()
	return Observation{
		Outcome: outcome, Key: l.key, Fence: l.row.Fence, Until: time.UnixMicro(l.until.Load()),
		Began: began, Duration: now.Sub(began), HeldFor: now.Sub(l.decided), Requests: requests, Err: err,
	}
}

func outcomeOf(err error) Outcome {
	var done *CompletedError
	var known interface {
		error
		outcome() Outcome
	}
	switch {
	case errors.As(err, &known):
		return known.outcome()
	case errors.As(err, &done) && done.Stale:
		return OutcomeStale
	case errors.Is(err, ErrCompleted):
		return OutcomeAlreadyCompleted
	case errors.As(err, new(*PayloadMismatchError)):
		return OutcomeMismatch
	case errors.Is(err, ErrHeld):
		return OutcomeHeld
	case errors.Is(err, ErrLost):
		return OutcomeLost
	case errors.As(err, new(*StoreError)) && !errors.Is(err, context.Canceled): // not given up by its caller
		return OutcomeStoreFailed
	}
	return OutcomeRefused
}

// silent reports whether the outcome is neither observed nor logged, so that
// nothing needs to be measured.
func (l *Locker) silent(ctx context.Context, outcome Outcome) bool {
	return l.opts.Observe == nil && !l.opts.Logger.Enabled(ctx, outcome.level())
}

// report calls Options.Observe with o and logs it.
func (l *Locker) report(ctx context.Context, o Observation) {
	o.Namespace, o.Store = l.opts.Namespace, l.storeName
	if l.opts.Observe != nil {
		l.opts.Observe(ctx, o)
	}
	level := o.level()
	if !l.opts.Logger.Enabled(ctx, level) {
		return
	}
	attrs := o.LogValue().Group()
	if l.opts.LogKeys {
		attrs = append(attrs, slog.String("name", printable.Text(o.Key.Name)), slog.String("event", printable.Text(o.Key.Event)))
	}
	l.opts.Logger.LogAttrs(ctx, level, "lambdalock: "+string(o.Outcome), attrs...)
}
