package lock

import (
	"cmp"
	"context"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
)

const (
	shortestPoll = 40 * time.Millisecond
	longestPoll  = 2 * time.Second
)

// sight is when a waiter first and last saw an owner, by the waiter's clock.
type sight struct {
	token    string
	at, last time.Time
}

// wait sleeps until it is worth asking for the name again. It returns a
// [*HeldError] if no wait is allowed, or if the wait has lasted long enough or
// was cut short.
func (a *acquisition) wait(round int) error {
	now := a.clock.Now()
	look := a.nextLook(now, round)
	if end, _ := a.waitEnd(); a.joins() && now.Before(end) {
		a.join(end)
		now = a.clock.Now()
		look = a.nextLook(now, round)
	}
	return a.rest(now, look)
}

// rest waits as long as look says, if the wait may last that long.
func (a *acquisition) rest(now time.Time, look time.Duration) error {
	if a.locker.opts.MaxWait == 0 {
		return a.heldError(nil)
	}
	end, cause := a.waitEnd()
	if !now.Before(end) {
		return a.heldError(cause)
	}
	err := a.clock.Sleep(a.ctx, min(look, end.Sub(now)))
	a.waited = a.clock.Now().Sub(a.began)
	if err != nil {
		return a.heldError(err)
	}
	return nil
}

// waitEnd returns until when the wait may last, and why that is less than
// MaxWait. The requests, the shortest run and the release must still fit in
// after the wait.
func (a *acquisition) waitEnd() (end time.Time, cause error) {
	end, cause = a.began.Add(a.locker.opts.MaxWait), context.Cause(a.ctx)
	var workEnd time.Time
	if !a.timing.deadline.IsZero() {
		workEnd = a.timing.deadline.Add(-a.timing.reserve)
	}
	if before := a.set.last(); before != nil {
		end = a.set.began.Add(a.locker.opts.MaxWait)
		workEnd, _ = before.work.Deadline() // a fixed lease of the set may end sooner
	}
	if last := workEnd.Add(-invocation.MinRun - a.timing.budget); !workEnd.IsZero() && last.Before(end) {
		return last, cmp.Or(cause, context.DeadlineExceeded)
	}
	return end, cause
}

// nextLook returns how long to wait before the name may be free: about as long
// as it has been held already. A holder that has worked for a second is likely
// to work for another, and one that has just begun is likely to end soon. That
// costs few requests for long work and little delay for short work. It never
// waits longer than until just after the lease ends. The end of a cooldown is
// known, so no waiter asks before it.
//
// The holder's stamp tells how long it has held the name. If its clock is ahead
// of ours, the time that we have seen it counts instead. Otherwise a holder
// whose clock is an hour ahead would look as if it had just begun, all the
// time.
func (a *acquisition) nextLook(now time.Time, round int) time.Duration {
	if owner := a.row.Owner(); a.seen.token != owner {
		a.line.others = a.seen.last
		a.seen = sight{token: owner, at: now}
	}
	a.seen.last = now
	look := shortestPoll << min(round, 5)
	toEnd, held := longestPoll, time.Duration(0)
	if !a.row.Unknown() && a.row.Token != "" {
		wall := clock.Wall(a.clock)
		held = max(wall.Sub(a.row.Stamp), now.Sub(a.seen.at))
		look = held
		toEnd = a.row.Until.Sub(wall) + time.Millisecond
	}
	if a.row.Cooling() {
		return max(a.cooldownEnds(now, toEnd), time.Millisecond)
	}
	look = min(max(look, shortestPoll), longestPoll)
	look += clock.Jitter(a.clock, look/2) // so that waiters who came together spread out
	return max(a.turnComes(now, held, toEnd, look), time.Millisecond)
}
