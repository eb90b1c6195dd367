package lock

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/lambdalock/lambdalock/internal/event/printable"
)

// report reports what became of the acquisition.
func (a *acquisition) report(err error) {
	o := Observation{
		Outcome: a.outcome(err), Op: "acquire", Key: a.key, Fence: a.row.Fence, Until: a.row.Until,
		Began: a.began, Duration: a.decided.Sub(a.began), Waited: a.waited, Requests: a.requests.sent, Err: err,
	}
	switch o.Outcome {
	case OutcomeTakenOver:
		o.Holder = a.row.Previous.Holder
	case OutcomeHeld, OutcomeCoalesced:
		var held *HeldError
		o.Holder, o.Duplicate = a.row.Holder, errors.As(err, &held) && held.Duplicate
	}
	a.locker.report(a.ctx, o)
}

func (a *acquisition) outcome(err error) Outcome {
	switch {
	case err != nil && a.requests.pace != nil && a.requests.throttled > 0:
		return OutcomeRequeued
	case err != nil:
		return outcomeOf(err)
	case a.row.Previous.Holder != "":
		return OutcomeTakenOver
	}
	return OutcomeAcquired
}

func (l *Lock) observeSettled(outcome Outcome, s *settlement, err error) {
	o := l.observation(outcome, s.began, s.sent, err)
	o.Op = s.op()
	o.Requests += int(l.unreported.Swap(0))
	o.Duration, o.HeldFor = s.ended.Sub(s.began), s.ended.Sub(l.decided) // of a set, others ended after it
	o.Completed = s.completes && err == nil
	l.locker.report(l.ctx, o)
}

// observeNow reports an outcome between the beginning and the end of the lock.
func (l *Lock) observeNow(outcome Outcome, err error) {
	l.locker.report(l.ctx, l.observation(outcome, l.clock.Now(), 0, err))
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
