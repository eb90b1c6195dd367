package lock

import (
	"context"
	"errors"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/lock/driver"
)

const (
	// firstPause is short, because the usual reason to repeat a request is a
	// connection that broke, and the lock may already be ours.
	firstPause = 25 * time.Millisecond
	// firstBackOff is longer, because an overloaded store recovers only if it gets
	// fewer requests.
	firstBackOff = 200 * time.Millisecond
	// shortestAttempt is the time that must be left for another attempt. An attempt
	// that is cut short only hides what went wrong before.
	shortestAttempt = 50 * time.Millisecond
	// claimPatience is how often a store may throttle a claim before the claim
	// gives up. That of a record of a batch gives up immediately, because the batch
	// tries again.
	claimPatience = 2
	// longestBackOff of a record of a batch is short, because the batch claims
	// nothing else meanwhile.
	longestBackOff = 2 * time.Second
)

// retries repeats one idempotent request to the store until it is answered.
type retries struct {
	locker *Locker
	clock  clock.Clock
	until  time.Time // no attempt begins after it or outlasts it
	// onThrottle reports whether to give up now that the store has throttled the
	// request that many times. Nil: never.
	onThrottle func(l *Locker, times int) bool
	pace       *invocation.Pace // of the batch whose record sends the request; nil: none
	once       bool             // the caller repeats the request, after others

	sent      int
	throttled int
	unsure    bool // an attempt may have been applied, or may still be
}

// send returns the answer, a [*StoreError], or the [*ConfigError] of a store
// that cannot be opened. That the row refused the request is an answer. Every
// error is met with another attempt while there is time, unless the store knows
// that it lasts. Of several errors send returns that one, or else the last one
// with which the store answered, or else the last one that says more than that
// time ran out.
func (r *retries) send(ctx context.Context, op string, request func(context.Context) (bool, error)) (bool, error) {
	if err := ctx.Err(); err != nil { // a client would send nothing
		return false, r.failed(storeError(op, r.sent, &driver.Error{Err: err}))
	}
	var failure *StoreError
	began := r.clock.Now()
	for try := 0; ; try++ {
		at := r.clock.Now()
		ok, err := r.attempt(ctx, request)
		if err == nil {
			r.pace.Taken(at)
		}
		if err == nil || errors.As(err, new(*ConfigError)) {
			return ok, err
		}
		e := reported(err)
		r.unsure = r.unsure || !e.Unapplied
		failure = moreTelling(failure, storeError(op, r.sent, e))
		pause := clock.Jitter(r.clock, firstPause<<min(try, 7))
		if throttled(e) {
			r.pace.Throttled(at, r.clock.Now())
			if r.throttled++; r.throttled == 1 {
				defer r.pace.Stuck()()
			}
			if r.onThrottle != nil && r.onThrottle(r.locker, r.throttled) {
				return false, r.failed(failure)
			}
			pause = r.backOff(began)
		}
		left := r.until.Sub(r.clock.Now()) - shortestAttempt
		if r.once || e.Lasting || left <= 0 || r.clock.Sleep(ctx, min(pause, left)) != nil {
			return false, r.failed(failure)
		}
	}
}

// moreTelling returns the error to report of those before, or nil, and of the
// next one.
func moreTelling(before, next *StoreError) *StoreError {
	if before == nil || next.Answered || !next.Temporary || !before.Answered && !errors.Is(next, context.DeadlineExceeded) {
		return next
	}
	return before
}

// failed returns e, about all attempts.
func (r *retries) failed(e *StoreError) *StoreError {
	e.Requests, e.Unapplied = r.sent, !r.unsure
	return e
}

// backOff returns a pause that doubles each time, up to an eighth of the whole
// time, so that there are enough tries.
func (r *retries) backOff(began time.Time) time.Duration {
	pause := min(firstBackOff<<min(r.throttled-1, 5), max(r.until.Sub(began)/8, firstBackOff))
	if r.pace != nil {
		pause = min(pause, longestBackOff)
	}
	return pause/2 + clock.Jitter(r.clock, pause/2)
}

// attempt gives each request its own context, because the store's client may
// hold on to it.
func (r *retries) attempt(ctx context.Context, request func(context.Context) (bool, error)) (bool, error) {
	limit := r.clock.Now().Add(attemptTimeout)
	if r.until.Before(limit) {
		limit = r.until
	}
	ctx, cancel := r.clock.WithDeadlineCause(ctx, limit, nil)
	defer cancel()
	r.sent++
	return request(ctx)
}

// throttled reports whether the store throttled the request, or refused it for
// an unknown reason.
func throttled(e *driver.Error) bool { return e.Answered && !e.Lasting && !e.Conflict }

// claimGivesUp lets a claim give up soon, because its source delivers the event
// again.
func (l *Locker) claimGivesUp(times int) bool {
	return times >= claimPatience || l.pressed.Load() > 0
}

// notePressure lets a settlement go on, because it has no second chance.
// Meanwhile the claims of this process give up.
func (l *Locker) notePressure(times int) bool {
	if times == 1 {
		l.pressed.Add(1)
	}
	return false
}
