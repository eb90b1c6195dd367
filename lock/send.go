package lock

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// firstBackoff is short, because the usual reason to repeat a request is a
// connection that broke, and the lock may already be ours.
const firstBackoff = 25 * time.Millisecond

// sending repeats one idempotent request to the store until it is answered.
type sending struct {
	until    time.Time // no attempt begins or lasts beyond
	detached bool      // goes on when the caller's context has ended
	requests int
	unsure   bool    // an attempt had no answer, and may have been applied
	first    bounded // the context of the first attempt, to save an allocation
}

// send returns the answer, a [*StoreError], or the [*ConfigError] of a store that
// cannot be opened. A refusal is an answer.
func (s *sending) send(op string, ctx context.Context, now time.Time, request func(context.Context) (bool, error)) (bool, error) {
	for try := 0; ; try++ {
		attempt := s.attempt(ctx, now)
		ok, err := request(attempt)
		attempt.stop()
		if err == nil || errors.As(err, new(*ConfigError)) {
			return ok, err
		}
		se := storeError(op, s.requests, err)
		s.unsure = s.unsure || !se.Rejected
		wait := backoff(try)
		now = time.Now().Add(wait)
		if !se.Temporary || !now.Before(s.until) || s.pause(ctx, wait) != nil {
			return false, se
		}
	}
}

// attempt is the context of the next request. It serves no other one: the store's
// client may hold on to it.
func (s *sending) attempt(ctx context.Context, now time.Time) *bounded {
	limit := now.Add(attemptTimeout)
	if s.until.Before(limit) {
		limit = s.until
	}
	b := &s.first
	if s.requests > 0 {
		b = new(bounded)
	}
	s.requests++
	b.parent, b.deadline, b.detached = ctx, limit, s.detached
	return b
}

func (s *sending) pause(ctx context.Context, d time.Duration) error {
	if s.detached {
		ctx = context.WithoutCancel(ctx)
	}
	return pause(ctx, d)
}

// backoff is full jitter over a range that doubles with each try.
func backoff(try int) time.Duration {
	return rand.N(firstBackoff << min(try, 5))
}

// storeError completes what the store reported. An error that the store did not
// classify may be anything, so it counts as passing and as possibly applied.
func storeError(op string, requests int, err error) *StoreError {
	var se *StoreError
	if !errors.As(err, &se) {
		se = &StoreError{Temporary: true, Err: err}
	}
	se.Op, se.Requests = op, requests
	return se
}
