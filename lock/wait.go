package lock

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"
)

const (
	shortestPoll = 40 * time.Millisecond
	longestPoll  = 2 * time.Second
)

// sight is when a waiter first saw an owner, by its own clock.
type sight struct {
	token string
	at    time.Time
}

// wait sleeps until the name is worth asking for again, or says why it is not:
// waiting was not wanted, has lasted long enough, or was cut short.
func (a *acquisition) wait(round int) error {
	if a.locker.opts.Wait == 0 {
		return a.heldError(nil)
	}
	end := a.began.Add(a.locker.opts.Wait)
	cause := context.Cause(a.ctx)
	if !a.timing.deadline.IsZero() {
		// What follows a wait must still fit in: the requests, the least run, the release.
		last := a.timing.deadline.Add(-a.timing.reserve - minRun - a.timing.budget)
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

// nextLook is when the name may be free. A holder that has worked for a second is
// likely to work for another one, one that began just now to end soon: looking
// again after as long as it has held already costs few requests for long work
// and little delay for short work. Never later than just after its lease ends.
//
// How long it has held is told by its own clock. Where that is ahead of ours, what we
// have seen of it ourselves counts: a clock that is an hour ahead would look like a
// holder that begins all the time.
func (a *acquisition) nextLook(now time.Time, round int) time.Duration {
	look := shortestPoll << min(round, 5)
	toEnd := longestPoll
	if !a.row.unknown() && a.row.Token != "" {
		wall := a.locker.wall()
		look = max(wall.Sub(a.row.Since), now.Sub(a.seen.at))
		toEnd = a.row.Until.Sub(wall) + time.Millisecond
	}
	look = min(max(look, shortestPoll), longestPoll)
	look += rand.N(look / 2) // so that waiters who came together do not stay together
	return max(min(look, toEnd), time.Millisecond)
}
