package lock

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

const (
	// firstPause is short, because the usual reason to repeat a request is a
	// connection that broke, and the lock may already be ours.
	firstPause = 25 * time.Millisecond
	// firstRest is longer, because a store that is asked for too much recovers
	// only if it is asked for less.
	firstRest = 200 * time.Millisecond
	// shortestAttempt is what must be left for another attempt. One that is cut
	// short only hides what was wrong with the others.
	shortestAttempt = 50 * time.Millisecond
	// claimPatience is how often a claim is turned away for the store's load
	// before it gives up.
	claimPatience = 2
)

// retries repeats one idempotent request to the store until it is answered.
type retries struct {
	locker *Locker
	until  time.Time // no attempt begins or lasts beyond
	// shed is called when the store has turned the request away for its load,
	// that many times so far, and reports whether to give up. Nil: never.
	shed func(l *Locker, times int) bool

	sent       int
	turnedAway int
	unsure     bool // an attempt had no answer: it may have been applied, or may still be
}

// send returns the answer, a [*StoreError], or the [*ConfigError] of a store that
// cannot be opened. A refusal is an answer. Of several errors it returns the last
// one with which the store answered: a last attempt that is cut short tells less.
func (r *retries) send(ctx context.Context, op string, request func(context.Context) (bool, error)) (bool, error) {
	var failure *driver.Error
	began := time.Now()
	for try := 0; ; try++ {
		ok, err := r.attempt(ctx, request)
		if err == nil || errors.As(err, new(*ConfigError)) {
			return ok, err
		}
		e := reported(err)
		r.unsure = r.unsure || !e.Rejected
		if failure == nil || e.Rejected || !failure.Rejected {
			failure = e
		}
		pause := jitter(firstPause << min(try, 7))
		if turnedAway(e) {
			r.turnedAway++
			if r.shed != nil && r.shed(r.locker, r.turnedAway) {
				return false, storeError(op, r.sent, failure)
			}
			pause = r.rest(began)
		}
		left := time.Until(r.until) - shortestAttempt
		if !e.Temporary || left <= 0 || sleep(ctx, min(pause, left)) != nil {
			return false, storeError(op, r.sent, failure)
		}
	}
}

// rest is twice as long each time, up to a part of the whole time: there must be
// enough tries before that is over.
func (r *retries) rest(began time.Time) time.Duration {
	rest := min(firstRest<<min(r.turnedAway-1, 5), max(r.until.Sub(began)/8, firstRest))
	return rest/2 + jitter(rest/2)
}

// attempt gives each request a context of its own, because the store's client may
// hold on to it.
func (r *retries) attempt(ctx context.Context, request func(context.Context) (bool, error)) (bool, error) {
	limit := time.Now().Add(attemptTimeout)
	if r.until.Before(limit) {
		limit = r.until
	}
	ctx, cancel := context.WithDeadline(ctx, limit)
	defer cancel()
	r.sent++
	return request(ctx)
}

// reported returns what the store reported. An error that the store did not
// classify may be anything, so it counts as temporary and as possibly applied.
func reported(err error) *driver.Error {
	if e := (*driver.Error)(nil); errors.As(err, &e) {
		return e
	}
	return &driver.Error{Temporary: true, Err: err}
}

// turnedAway reports whether the store is asked for more than it takes.
func turnedAway(e *driver.Error) bool { return e.Temporary && e.Rejected && !e.Conflict }

// shedClaim lets a claim give up soon, because its source delivers the event
// again.
func (l *Locker) shedClaim(times int) bool {
	return times >= claimPatience || l.pressed.Load() > 0
}

// shedClaims lets a settlement go on, because it has no second chance, and the
// claims of this process give up meanwhile.
func (l *Locker) shedClaims(times int) bool {
	if times == 1 {
		l.pressed.Add(1)
	}
	return false
}

// jitter is anything up to d, so that those who failed together do not come back
// together.
func jitter(d time.Duration) time.Duration { return rand.N(d) }

// sleep returns the context's cause if the context ends first.
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
