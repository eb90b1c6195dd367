package lock

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	// firstPause is short, because the usual reason to repeat a request is a
	// connection that broke, and the lock may already be ours.
	firstPause = 25 * time.Millisecond
	// firstRest is longer, because a store that is asked for too much gets better
	// only if it is asked for less.
	firstRest = 200 * time.Millisecond
	// shortestAttempt is what must be left for another attempt: one that is cut short only
	// hides what was wrong with the others.
	shortestAttempt = 50 * time.Millisecond
)

// sending repeats one idempotent request to the store until it is answered.
type sending struct {
	until time.Time // no attempt begins or lasts beyond
	// shed decides whether to give up when the store has turned the request away for
	// its load, so many times now. Nil: never.
	shed func(times int) bool

	requests   int
	turnedAway int
	unsure     bool // an attempt had no answer, and may have been applied, or may still be
}

// send returns the answer, a [*StoreError], or the [*ConfigError] of a store that
// cannot be opened. A refusal is an answer. Of several errors it is the last one with
// which the store answered: a last attempt that the end of the time cuts short tells
// less.
func (s *sending) send(ctx context.Context, op string, request func(context.Context) (bool, error)) (bool, error) {
	var failure *StoreError
	began := time.Now()
	for try := 0; ; try++ {
		ok, err := s.attempt(ctx, request)
		if err == nil || errors.As(err, new(*ConfigError)) {
			return ok, err
		}
		se := storeError(op, s.requests, err)
		s.unsure = s.unsure || !se.Rejected
		if failure == nil || se.Rejected || !failure.Rejected {
			failure = se
		}
		failure.Requests = s.requests
		pause := jitter(firstPause << min(try, 7))
		if se.turnedAway() {
			s.turnedAway++
			if s.shed != nil && s.shed(s.turnedAway) {
				return false, failure
			}
			// Twice as long each time, up to a part of the whole time: there must be tries
			// enough before it is over.
			rest := min(firstRest<<min(s.turnedAway-1, 5), max(s.until.Sub(began)/8, firstRest))
			pause = rest/2 + jitter(rest/2)
		}
		left := time.Until(s.until) - shortestAttempt
		if !se.Temporary || left <= 0 || sleep(ctx, min(pause, left)) != nil {
			return false, failure
		}
	}
}

// attempt gives each request a context of its own: the store's client may hold on
// to it.
func (s *sending) attempt(ctx context.Context, request func(context.Context) (bool, error)) (bool, error) {
	limit := time.Now().Add(attemptTimeout)
	if s.until.Before(limit) {
		limit = s.until
	}
	ctx, cancel := context.WithDeadline(ctx, limit)
	defer cancel()
	s.requests++
	return request(ctx)
}

// turnedAway: the store is asked for more than it takes.
func (e *StoreError) turnedAway() bool { return e.Temporary && e.Rejected && !e.Conflict }

// jitter is anything up to d, so that those who failed together do not come back
// together.
func jitter(d time.Duration) time.Duration { return rand.N(d) }

// sleep returns the context's cause if that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// storeError completes what the store reported, in a copy: the store may report the
// same value every time. An error that the store did not classify may be anything,
// so it counts as passing and as possibly applied.
func storeError(op string, requests int, err error) *StoreError {
	se := StoreError{Temporary: true, Err: err}
	if reported := (*StoreError)(nil); errors.As(err, &reported) {
		se = *reported
	}
	se.Op, se.Requests = op, requests
	return &se
}
