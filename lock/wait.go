package lock

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
)

const (
	shortestPoll = 40 * time.Millisecond
	longestPoll  = 2 * time.Second
)

// sight is when a waiter first saw an owner, by the waiter's clock.
type sight struct {
	token string
	at    time.Time
}

// wait sleeps until it is worth asking for the name again. It returns a
// [*HeldError] if waiting was not wanted, has lasted long enough, or was cut short.
func (a *acquisition) wait(round int) error {
	if a.locker.opts.MaxWait == 0 {
		return a.heldError(nil)
	}
	end := a.began.Add(a.locker.opts.MaxWait)
	cause := context.Cause(a.ctx)
	if !a.timing.deadline.IsZero() {
		// The requests, the shortest run and the release must still fit in after the wait.
		last := a.timing.deadline.Add(-a.timing.reserve - invocation.MinRun - a.timing.budget)
		if last.Before(end) {
			end = last
			cause = cmp.Or(cause, context.DeadlineExceeded)
		}
	}
	now := time.Now()
	if !now.Before(end) {
		return a.heldError(cause)
	}
	if a.seen.token != a.row.Token {
		a.seen = sight{a.row.Token, now}
	}
	err := sleep(a.ctx, min(a.nextLook(now, round), end.Sub(now)))
	a.waited = time.Since(a.began)
	if err != nil {
		return a.heldError(err)
	}
	return nil
}

// nextLook returns when the name may be free. A holder that has worked for a second
// is likely to work for another; one that began just now is likely to end soon. So
// looking again after as long as it has held the name already costs few requests
// for long work and little delay for short work. It never looks later than just
// after the lease ends.
//
// The holder's clock tells how long it has held the name. If that clock is ahead of
// ours, what we have seen ourselves counts: a clock that is an hour ahead would
// look like a holder that begins all the time.
func (a *acquisition) nextLook(now time.Time, round int) time.Duration {
	look := shortestPoll << min(round, 5)
	toEnd := longestPoll
	if !a.row.Unknown() && a.row.Token != "" {
		wall := a.locker.wall()
		look = max(wall.Sub(a.row.Stamp), now.Sub(a.seen.at))
		toEnd = a.row.Until.Sub(wall) + time.Millisecond
	}
	look = min(max(look, shortestPoll), longestPoll)
	look += rand.N(look / 2) // so that waiters who came together do not stay together
	return max(min(look, toEnd), time.Millisecond)
}
