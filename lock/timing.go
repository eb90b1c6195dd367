package lock

import (
	"cmp"
	"context"
	"time"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/lock/driver"
)

const (
	attemptTimeout = time.Second
	maxBudget      = 2 * time.Second
	// overtime is what Grace leaves of a lease that is renewed only once its work
	// has outlived its context: time for a few failed requests, and little to wait
	// for if the process is ended after all.
	overtime = 6 * time.Second
)

// timing says how much time one acquisition may take, and how long its lease
// lasts.
type timing struct {
	deadline  time.Time // of the caller's context; zero: none
	outermost time.Time // the latest deadline of the lock and those around it
	reserve   time.Duration
	budget    time.Duration // of one round of requests to acquire
	lease     time.Duration // zero: to the outermost deadline plus Grace
	margin    time.Duration // how long before its end the lease counts as lost
	renew     bool          // while the work runs; otherwise once it has outlived its context
	renewal   time.Duration // for how long the lease is renewed; zero: never
	beat      time.Duration // between renewals
}

// leaseEnd returns when a lease ends that begins now.
func (l *Locker) leaseEnd(t timing, now time.Time) time.Time {
	if t.lease > 0 {
		return now.Add(t.lease)
	}
	return t.outermost.Add(l.opts.Grace).Round(0).Truncate(time.Microsecond)
}

func (l *Locker) timing(ctx context.Context, now time.Time) (timing, error) {
	t := timing{margin: l.opts.Grace}
	deadline, ok := ctx.Deadline()
	var remaining time.Duration
	if ok {
		remaining = deadline.Sub(now)
		t.deadline, t.outermost = deadline, deadline
		for outer := heldIn(ctx); outer != nil; outer = outer.outer {
			if d := outer.timing.deadline; d.Sub(now) <= invocation.LongestDeadline {
				t.outermost = later(t.outermost, d)
			}
		}
		t.reserve = invocation.Reserve(l.opts.Reserve, remaining)
	}
	switch mode := l.opts.Lease; {
	case mode.kind == deadlineLease && ok && remaining <= invocation.LongestDeadline:
		t.renewal = t.margin + overtime
	case mode.kind == fixedLease:
		t.lease = mode.lease
	default:
		t.renew = true
		t.lease = cmp.Or(mode.lease, DefaultLease)
		t.renewal = t.lease
	}
	if t.renewal > 0 {
		t.beat = min(t.renewal/3, (t.renewal-t.margin)/2)
	}
	return t.at(now)
}

// at returns the timing of an acquisition that begins now, under the same
// deadline and with the same reserve.
func (t timing) at(now time.Time) (timing, error) {
	t.budget = maxBudget
	if t.deadline.IsZero() {
		return t, nil
	}
	left, need := t.deadline.Sub(now), invocation.MinRun+t.reserve
	t.budget = min(maxBudget, left/10)
	if left < need {
		return t, &DeadlineError{Left: left, Need: need}
	}
	return t, nil
}

// overtimeAhead returns how long before the outermost deadline work that still
// runs has outlived its context. Until half-way between the two it counts as
// work that is about to end with its context.
func (t timing) overtimeAhead() time.Duration {
	return min(t.outermost.Sub(t.deadline.Add(-t.reserve))/2, t.beat)
}

// settleUntil returns until when a settlement may try. A completion may take
// all the time there is, except what the runtime needs to send the result; once
// the deadline has passed, that is the time for which the lease keeps others
// away. A release gets little, because it only saves the next claimant time,
// and after the deadline a moment.
func (h *hold) settleUntil(now time.Time, completes bool) time.Time {
	deadline, within := h.deadline(now), h.locker.opts.CompleteWithin
	until, left := now.Add(maxBudget), deadline.Sub(now)
	switch {
	case completes && within > 0:
		until = now.Add(within)
	case completes && left > 0 && left <= invocation.LongestDeadline:
		until = deadline
	case completes:
		until = later(until, now.Add(time.UnixMicro(h.until.Load()).Sub(h.wall())))
	}
	switch {
	case deadline.IsZero(), left <= 0 && completes:
		return until
	case left <= 0:
		return now.Add(maxBudget / 8)
	}
	if last := deadline.Add(-min(invocation.TimeToAnswer, h.timing.reserve/2, left/2)); last.Before(until) {
		return last
	}
	return until
}

// coolDown makes s keep the name held until Options.HoldAtLeast have passed,
// unless OnInterrupted has ended the lock before the work began. The wall clock
// may have been set meanwhile, and the monotonic one have stood still: what
// passed by both has passed.
func (h *hold) coolDown(s *driver.Settlement) {
	if h.question == asked {
		return
	}
	began := h.clock.Now()
	wall := began.Round(0)
	passed := max(min(began.Sub(h.decided), wall.Sub(h.decided.Round(0))), 0)
	if left := h.locker.opts.HoldAtLeast - passed; left > 0 {
		s.Now, s.Until, s.CooldownToken = wall, wall.Add(left).Truncate(time.Microsecond), h.clock.Text()
	}
}

// deadline returns the lock's deadline or, once that has passed, the next one
// of the locks around it. The deadline of a nested lock is the end of the work
// around it, so the process may live on; but its own deadline still holds.
func (h *hold) deadline(now time.Time) time.Time {
	own := h.timing.deadline
	for outer := h; outer != nil && !own.IsZero(); outer = outer.outer {
		if d := outer.timing.deadline; d.After(now) {
			return d
		}
	}
	return own
}
