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
// The fence tells owners apart: it rises with each, and stays in a cooldown. In
// a store without fences, all owners look like one.
type sight struct {
	fence    int64
	at, last time.Time
}

// waiter waits for the name that its acquisition asks for.
type waiter struct {
	acquisition
	seen sight
	line line
}

// run returns nil once the claim owns the row.
func (w *waiter) run() error {
	if err := w.prepare(); err != nil {
		return err
	}
	for round := 0; ; round++ {
		granted, err := w.try()
		if granted || err != nil {
			return err
		}
		if err := w.wait(round); err != nil {
			return err
		}
	}
}

// wait sleeps until it is worth asking for the name again. It returns a
// [*HeldError] if no wait is allowed or would help, or if it has lasted long
// enough or was cut short.
func (w *waiter) wait(round int) error {
	now := w.clock.Now()
	look := w.nextLook(now, round)
	inVain := w.coolsTooLong(now)
	if end, _ := w.waitEnd(); w.joins() && now.Before(end) && !inVain {
		w.join(end)
		now = w.clock.Now()
		look = w.nextLook(now, round)
	}
	return w.sleep(now, look, inVain)
}

// coolsTooLong reports whether the name stays held until the wait is over,
// because it is in a cooldown: only an operator ends that sooner.
func (w *waiter) coolsTooLong(now time.Time) bool {
	end, _ := w.waitEnd()
	return w.row.Cooling() && w.row.Until.Sub(clock.Wall(w.clock)) >= end.Sub(now)
}

// sleep waits as long as look says, if the wait may last that long and is not
// in vain.
func (w *waiter) sleep(now time.Time, look time.Duration, inVain bool) error {
	if w.locker.opts.MaxWait == 0 {
		return w.heldError(nil)
	}
	end, cause := w.waitEnd()
	if inVain || !now.Before(end) {
		return w.heldError(cause)
	}
	err := w.clock.Sleep(w.ctx, min(look, end.Sub(now)))
	w.waited = w.clock.Now().Sub(w.began)
	if err != nil {
		return w.heldError(err)
	}
	return nil
}

// waitEnd returns until when the wait may last, and why that is less than
// MaxWait. The requests, the shortest run and the release must still fit in
// after the wait.
func (w *waiter) waitEnd() (end time.Time, cause error) {
	end, cause = w.called.Add(w.locker.opts.MaxWait), context.Cause(w.ctx)
	var workEnd time.Time
	if !w.timing.deadline.IsZero() {
		workEnd = w.timing.deadline.Add(-w.timing.reserve)
	}
	if w.after != nil {
		workEnd, _ = w.after.work.Deadline() // its fixed lease may end sooner
	}
	if last := workEnd.Add(-invocation.MinRun - w.timing.budget); !workEnd.IsZero() && last.Before(end) {
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
func (w *waiter) nextLook(now time.Time, round int) time.Duration {
	if w.seen.at.IsZero() || w.seen.fence != w.row.Fence {
		w.line.others = w.seen.last
		w.seen = sight{fence: w.row.Fence, at: now}
	}
	w.seen.last = now
	look := shortestPoll << min(round, 5)
	toEnd, held := longestPoll, time.Duration(0)
	if !w.row.Unknown() && w.row.Token != "" {
		wall := clock.Wall(w.clock)
		held = max(wall.Sub(w.row.Stamp), now.Sub(w.seen.at))
		look = held
		toEnd = w.row.Until.Sub(wall) + time.Millisecond
	}
	if w.row.Cooling() {
		return max(w.cooldownEnds(now, toEnd), time.Millisecond)
	}
	look = min(max(look, shortestPoll), longestPoll)
	look += clock.Jitter(w.clock, look/2) // so that waiters who came together spread out
	return max(w.turnComes(now, held, toEnd, look), time.Millisecond)
}
