package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
)

// SkipInterrupted completes an event that was interrupted, so that it runs at
// most once. One whose run never began, because the claim for it was not
// answered, is lost. It is for [Options.OnInterrupted].
func SkipInterrupted(context.Context, *InterruptedError) (*Completion, error) {
	return &Completion{}, nil
}

// FailInterrupted returns i, so that nothing runs for the event until somebody
// decides. It is for [Options.OnInterrupted].
func FailInterrupted(_ context.Context, i *InterruptedError) (*Completion, error) { return nil, i }

// noEvent returns why a key without an Event is refused.
func noEvent() error {
	return &NoKeyError{Field: "Event", Reason: "is empty, and with OnInterrupted every key needs one: it tells an event whose run was interrupted from others of its name"}
}

// decideInterrupted lets Options.OnInterrupted decide if an earlier run of the
// event was interrupted. It returns the lock if the work is to run.
func (l *Lock) decideInterrupted() (*Lock, error) {
	if l.locker.opts.OnInterrupted == nil {
		return l, nil
	}
	first := slices.IndexFunc(l.each(), func(one *Lock) bool { return one.interruptedRun() != nil })
	if first < 0 {
		return l, nil
	}
	ended := false
	defer func() { // after a panic, too
		if !ended {
			_ = l.releaseAfter(unbegun) // and the event stays interrupted
		}
	}()
	for _, one := range l.each() {
		if run := one.interruptedRun(); run != nil && mismatch(run.Payload, &one.claim) {
			err := &PayloadMismatchError{Key: one.key}
			one.observeNow(OutcomeMismatch, err)
			return nil, err
		}
	}
	one := l.each()[first]
	i := one.interrupted()
	one.observeNow(OutcomeInterrupted, i)
	for _, one := range l.each() {
		one.question = asked
	}
	c, err := l.decide(i)
	switch {
	case isAnswer(err, i):
		return nil, fmt.Errorf("lambdalock: key %s: OnInterrupted failed: %v", i.Key.Digest(), err)
	case err != nil:
		return nil, err
	case c != nil:
		ended = true
		if err := l.CompleteWith(*c); err != nil {
			return nil, err
		}
		return nil, &CompletedError{Key: i.Key, Result: c.Result}
	case l.work.Err() != nil: // no time is left, or the lease is lost
		return nil, context.Cause(l.work)
	}
	if err := l.check(); err != nil { // its timer may have stood still in a process that was frozen
		return nil, err
	}
	ended = true
	for _, one := range l.each() {
		one.question = answered
	}
	return l, nil
}

// decide calls Options.OnInterrupted, and tells the batch of a record if that
// returned no decision.
func (l *Lock) decide(i *InterruptedError) (*Completion, error) {
	ctx := l.Context()
	c, err := l.locker.opts.OnInterrupted(invocation.Begun(ctx), i)
	if r, _ := invocation.RecordClaimOf(ctx); r != nil {
		r.Undecided = (c == nil || err != nil) && !errors.Is(err, i) // which was observed as such
	}
	return c, err
}

// isAnswer reports whether err is what another lock, which OnInterrupted has
// used, answered about an event of its own. Taken for an answer about the event
// of i, it could make a client send that under a new key, to be done twice.
func isAnswer(err error, i *InterruptedError) bool {
	other := i
	return errors.Is(err, ErrHeld) || errors.Is(err, ErrCompleted) || errors.As(err, &other) && other != i ||
		errors.As(err, new(*PayloadMismatchError)) || errors.As(err, new(*NoKeyError))
}

// each returns the locks that l stands for.
func (l *Lock) each() []*Lock {
	if l.set != nil {
		return l.set.locks
	}
	return []*Lock{l}
}
