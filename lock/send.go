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
	op    string
	until time.Time // no attempt begins or lasts beyond

	requests int
	unsure   bool // an attempt had no answer, and may have been applied
}

// send returns the answer, a [*StoreError], or the [*ConfigError] of a store that
// cannot be opened. A refusal is an answer.
func (s *sending) send(ctx context.Context, request func(context.Context) (bool, error)) (bool, error) {
	for try := 0; ; try++ {
		limit := time.Now().Add(attemptTimeout)
		if s.until.Before(limit) {
			limit = s.until
		}
		attempt := &bounded{parent: ctx, deadline: limit}
		ok, err := request(attempt)
		attempt.stop()
		s.requests++
		if err == nil || errors.As(err, new(*ConfigError)) {
			return ok, err
		}
		se := storeError(s.op, s.requests, err)
		s.unsure = s.unsure || !se.Rejected
		wait := backoff(try)
		if !se.Temporary || !time.Now().Add(wait).Before(s.until) || pause(ctx, wait) != nil {
			return false, se
		}
	}
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
