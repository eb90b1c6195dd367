package lock

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// patience is how long those who stop a heartbeat wait for an observer or a log
// handler that it has called.
const patience = maxBudget / 8

// heartbeat renews a lease on its own goroutine. Stopping it waits for that
// goroutine, because Lambda would freeze one that is left behind and thaw it
// inside a later invocation. But it does not wait for ever for an observer,
// which may have stopped the heartbeat itself, or wait for somebody who does.
type heartbeat struct {
	clock    clock.Clock
	quit     context.CancelFunc
	done     chan struct{}
	lose     context.CancelCauseFunc            // ends the work
	watch    clock.Timer                        // calls lose if the goroutine is stuck
	last     clock.Timer                        // calls lose once the lock is handed over; nil before that
	wake     atomic.Pointer[context.CancelFunc] // ends the rest between two renewals; see look
	panicked any                                // by an observer or a log handler; known once done is closed
	telling  atomic.Bool                        // one of them is running
	stuck    atomic.Bool                        // somebody has waited for it in vain
}

func (h *heartbeat) stop() {
	h.quit()
	if !h.stuck.Load() {
		h.join()
	}
	h.watch.Stop()
}

// join waits until the goroutine has ended, or a callback has used up the
// patience.
func (h *heartbeat) join() {
	for {
		enough := make(chan struct{})
		t := h.clock.AfterFunc(patience, func() { close(enough) })
		select {
		case <-h.done:
			t.Stop()
			return
		case <-enough:
			if h.telling.Load() {
				h.stuck.Store(true)
				return
			}
		}
	}
}

// stopForGood stops the heartbeat. As nobody renews the lease any more, the
// work must end before it does.
func (l *Lock) stopForGood() {
	l.beat.stop()
	end := time.UnixMicro(l.until.Load()).Add(-l.timing.margin)
	if l.beat.last != nil {
		l.beat.last.Stop()
	}
	l.beat.last = l.clock.AfterFunc(end.Sub(l.wall()), func() { l.beat.lose(l.lostError()) })
}

// raise repeats the panic of an observer on the caller's goroutine. On the
// heartbeat's goroutine it would have ended the process and every lock in it.
func (h *heartbeat) raise() {
	select {
	case <-h.done:
		if h.panicked != nil {
			panic(h.panicked)
		}
	default: // it is stuck
	}
}

// tell calls report and keeps its panic for raise.
func (h *heartbeat) tell(report func()) {
	h.telling.Store(true)
	defer h.telling.Store(false)
	defer func() {
		if p := recover(); p != nil && h.panicked == nil {
			h.panicked = p
		}
	}()
	report()
}

// startHeartbeat starts the renewals, and ends the work's context through lose
// if the lease could not be renewed in time. The renewals go on when the
// caller's context ends: work that goes on regardless still needs its lock, and
// some platforms report a deadline that they do not enforce.
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-managed-instances-execution-environment.html
func (l *Lock) startHeartbeat(lose context.CancelCauseFunc) {
	ctx, quit := context.WithCancel(context.WithoutCancel(l.ctx))
	l.beat = &heartbeat{clock: l.clock, quit: quit, done: make(chan struct{}), lose: lose}
	l.beat.watch = l.clock.AfterFunc(math.MaxInt64, l.watch)
	l.watch()
	go func() {
		defer close(l.beat.done)
		stopped := false
		defer func() {
			if !stopped { // even if an observer ended this goroutine
				lose(l.lostError())
			}
		}()
		stopped = l.renewUntilStopped(ctx)
	}()
}

// watch ends the work in the middle of the margin if the heartbeat has not done
// so at its beginning: it may wait for a log handler whose output is blocked,
// or for a client that does not heed its context. A settlement that is under
// way decides for itself.
func (l *Lock) watch() {
	end := l.lostAt().Add(l.timing.margin / 2)
	switch left := end.Sub(l.wall()); {
	case left > 0:
		l.beat.watch.Reset(left)
	case l.ending.Load() == 0:
		l.beat.lose(l.lostError())
	}
}

// look lets the heartbeat look at the wall clock immediately: its timer stands
// still while the process is frozen.
func (h *heartbeat) look() {
	if wake := h.wake.Load(); wake != nil {
		(*wake)()
	}
}

// rest waits until the wall clock says that the next renewal is due, and
// reports false once the heartbeat has been stopped.
func (l *Lock) rest(ctx context.Context, due time.Time) bool {
	for {
		nap, wake := context.WithCancel(ctx)
		l.beat.wake.Store(&wake) // before the clock is read, so that no look is in vain
		err := l.clock.Sleep(nap, min(l.timing.beat, due.Sub(l.wall())))
		wake()
		if err == nil || ctx.Err() != nil {
			return err == nil
		}
	}
}

// renewUntilStopped reports false if the lease was lost. Once the lock is being
// ended, a failed renewal means nothing: the request that ends the lock may
// have come first.
func (l *Lock) renewUntilStopped(ctx context.Context) bool {
	for {
		limit, due := l.lostAt(), l.wall().Add(l.timing.beat)
		if limit.Before(due) {
			due = limit
		}
		if !l.rest(ctx, due) {
			return true
		}
		began, wall := l.clock.Now(), l.wall()
		// Unlike the timer above, the wall clock runs on while an environment is
		// frozen.
		left := limit.Sub(wall)
		if left <= 0 && l.hasEnded(ctx) {
			return true
		}
		if left <= 0 {
			l.observeBeat(ctx, OutcomeLost, began, 0, l.lostError())
			return false
		}
		now := wall.Truncate(time.Microsecond)
		ok, requests, err := l.renew(ctx, began.Add(left), now, l.timing.lease)
		switch {
		case ctx.Err() != nil, !ok && l.hasEnded(ctx):
			l.unreported.Add(int64(requests))
			return true
		case err == nil && ok:
			l.observeBeat(ctx, OutcomeRenewed, began, requests, nil)
		case err == nil:
			l.observeBeat(ctx, OutcomeLost, began, requests, l.lostError())
			return false
		default:
			l.observeBeat(ctx, OutcomeStoreFailed, began, requests, err)
		}
	}
}

// hasEnded reports whether the lock has ended or is being ended. It waits until
// the fate of a tentative end is known, or until ctx, which is the heartbeat's,
// ends: those who stop the heartbeat may hold what it waits for.
func (l *Lock) hasEnded(ctx context.Context) bool {
	if l.ending.Load() == tentative {
		select {
		case l.settling <- struct{}{}:
			defer func() { <-l.settling }()
		case <-ctx.Done():
			return true
		}
	}
	return l.ending.Load() != 0
}

// renew reports whether the lease lasts for so long from now on, or longer, and
// returns the number of requests. The time now is l.wall's, limit is not.
func (l *Lock) renew(ctx context.Context, limit, now time.Time, lease time.Duration) (bool, int, error) {
	until := later(now.Add(lease), time.UnixMicro(l.until.Load()))
	r := retries{locker: l.locker, clock: l.clock, until: limit}
	ok, err := r.send(ctx, "renew", func(ctx context.Context) (bool, error) {
		_, ok, err := l.renewOnce(ctx, &r, now, &until)
		return ok, err
	})
	if ok {
		l.confirm(until)
	}
	return ok, r.sent, err
}

// renewOnce is one attempt. If the row is ours with a later end, a copy of a
// request of this lock came first. Otherwise that end is by the clock of
// another process that resumed the lock, and says nothing until it is moved:
// then renewOnce asks for one after it, and again if others have moved the end
// meanwhile. So until may become later.
func (l *Lock) renewOnce(ctx context.Context, r *retries, now time.Time, until *time.Time) (row driver.Row, ok bool, err error) {
	for asked := range 4 {
		if asked > 0 {
			r.sent++
		}
		raise(&l.asked, until.UnixMicro())
		row, ok, err = l.locker.store.Renew(ctx, &driver.Renewal{
			Name: l.claim.Name, Token: l.claim.Token, Now: now, Until: *until, DeleteAfter: keepHeld(*until),
		})
		if ok || err != nil || row.Token != l.claim.Token || row.Until.Before(*until) {
			break
		}
		if *until = row.Until; until.UnixMicro() <= l.asked.Load() {
			return row, true, nil
		}
		*until = until.Add(time.Microsecond)
	}
	return row, ok, err
}

func (l *Lock) observeBeat(ctx context.Context, outcome Outcome, began time.Time, requests int, err error) {
	if l.locker.silent(ctx, outcome) {
		return
	}
	o := l.observation(outcome, began, requests, err)
	o.Op = "renew"
	l.beat.tell(func() { l.locker.report(ctx, o) })
}
