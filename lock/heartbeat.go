package lock

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// patience is how long those who stop a heartbeat wait for an observer or a log
// handler that it has called.
const patience = maxBudget / 8

// heartbeat renews a lease on its own goroutine. Stopping it waits for that
// goroutine, because Lambda would freeze one that is left behind and thaw it
// inside a later invocation. But it does not wait forever for an observer,
// which may have stopped the heartbeat itself, or wait for a goroutine that
// does.
type heartbeat struct {
	clock    clock.Clock
	lose     context.CancelCauseFunc            // ends the work
	overtime clock.Timer                        // begins the heartbeat; nil: it begins with the work
	watch    clock.Timer                        // calls lose if the goroutine is stuck; nil if overtime is not
	wake     atomic.Pointer[context.CancelFunc] // ends the sleep between two renewals; see look
	panicked any                                // by an observer or a log handler; known once done is closed
	telling  atomic.Bool                        // one of them is running
	stuck    atomic.Bool                        // a caller has waited for it in vain
	outlived bool                               // that the work has outlived its context was reported

	beginning sync.Mutex         // guards what follows
	stopped   bool               // it does not begin any more
	quit      context.CancelFunc // nil until it has begun
	done      chan struct{}      // nil until it has begun
}

// begin returns the context of the goroutine, or nil if the heartbeat was
// stopped before.
func (h *heartbeat) begin(ctx context.Context) context.Context {
	h.beginning.Lock()
	defer h.beginning.Unlock()
	if h.stopped {
		return nil
	}
	ctx, h.quit = context.WithCancel(context.WithoutCancel(ctx))
	h.done = make(chan struct{})
	return ctx
}

// ended returns a channel that is closed when the goroutine has ended, or nil
// if it has not begun.
func (h *heartbeat) ended() <-chan struct{} {
	h.beginning.Lock()
	defer h.beginning.Unlock()
	return h.done
}

func (h *heartbeat) stop() {
	h.beginning.Lock()
	h.stopped = true
	quit := h.quit
	h.beginning.Unlock()
	if h.overtime != nil {
		h.overtime.Stop()
	}
	if quit == nil {
		return
	}
	quit()
	if !h.stuck.Load() {
		h.join()
	}
	if h.watch != nil {
		h.watch.Stop()
	}
}

// join waits until the goroutine has ended, or a callback has used up the
// patience.
func (h *heartbeat) join() {
	done := h.ended()
	for done != nil {
		enough := make(chan struct{})
		t := h.clock.AfterFunc(patience, func() { close(enough) })
		select {
		case <-done:
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

// raise repeats the panic of an observer on the caller's goroutine. On the
// heartbeat's goroutine it would have ended the process and every lock in it.
func (h *heartbeat) raise() {
	select {
	case <-h.ended():
		if h.panicked != nil {
			panic(h.panicked)
		}
	default: // it is stuck, or has not begun
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
// platforms report a deadline that they do not enforce; see [UntilDeadline].
func (l *Lock) startHeartbeat(lose context.CancelCauseFunc) {
	l.beat = &heartbeat{clock: l.clock, lose: lose}
	l.renews = l.beat
	l.beat.watch = l.clock.AfterFunc(math.MaxInt64, l.watch)
	l.watch()
	ctx := l.beat.begin(l.ctx)
	go l.keepUp(ctx, l.timing.beat)
}

// startOvertime starts the renewals of a lease that lasts to the deadline once
// the work has outlived its context. Until then it costs a timer.
func (l *Lock) startOvertime() {
	l.beat = &heartbeat{clock: l.clock, lose: func(error) {}} // the context has ended
	l.renews = l.beat
	l.beat.overtime = l.clock.AfterFunc(l.lostAt().Add(-l.timing.overtimeAhead()).Sub(l.wall()), func() {
		if ctx := l.beat.begin(l.ctx); ctx != nil {
			l.keepUp(ctx, 0)
		}
	})
}

// keepUp renews the lease until the heartbeat is stopped or the lease is lost,
// for the first time after a pause.
func (l *Lock) keepUp(ctx context.Context, pause time.Duration) {
	defer close(l.beat.done)
	// An end that is being tried ends before the deadline, and needs no renewal.
	overtimeEnds := pause == 0 && l.end.hasEnded(ctx)
	if !overtimeEnds && !l.renewUntilStopped(ctx, pause) {
		l.beat.lose(l.lostError())
	}
}

// watch ends the work in the middle of the margin if the heartbeat has not done
// so at its beginning: it may wait for a log handler whose output is blocked,
// or for a client that does not heed its context, or an observer has ended its
// goroutine. A settlement that is under way decides for itself.
func (l *Lock) watch() {
	end := l.lostAt().Add(l.timing.margin / 2)
	switch left := end.Sub(l.wall()); {
	case left > 0:
		l.beat.watch.Reset(left)
	case !l.end.hasBegun():
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

// sleep waits until the wall clock says that the next renewal is due, and
// reports false once the heartbeat has been stopped.
func (l *Lock) sleep(ctx context.Context, due time.Time) bool {
	for {
		nap, wake := context.WithCancel(ctx)
		l.beat.wake.Store(&wake) // before the clock is read, so that no look is in vain
		err := l.clock.Sleep(nap, due.Sub(l.wall()))
		wake()
		if err == nil || ctx.Err() != nil {
			return err == nil
		}
	}
}

// renewUntilStopped reports false if the lease was lost. Once the lock is being
// ended, a failed renewal means nothing: the request that ends the lock may
// have come first.
func (l *Lock) renewUntilStopped(ctx context.Context, pause time.Duration) bool {
	for ; ; pause = l.timing.beat {
		limit, due := l.lostAt(), l.wall().Add(pause)
		if !l.timing.renew {
			limit = limit.Add(l.timing.margin) // no context is left to end before the lease does
		}
		if limit.Before(due) {
			due = limit
		}
		if !l.sleep(ctx, due) {
			return true
		}
		began, wall := l.clock.Now(), l.wall()
		// Unlike the timer above, the wall clock runs on while an environment is
		// frozen.
		left := limit.Sub(wall)
		if left <= 0 && l.end.hasEnded(ctx) {
			return true
		}
		if left <= 0 {
			l.observeBeat(ctx, OutcomeLost, began, 0, l.lostError())
			return false
		}
		now := wall.Truncate(time.Microsecond)
		ok, requests, err := l.renew(ctx, began.Add(left), now, l.timing.renewal)
		switch {
		case ctx.Err() != nil, !ok && l.end.hasEnded(ctx):
			l.unreported.Add(int64(requests))
			return true
		case err == nil && ok:
			l.observeBeat(ctx, OutcomeRenewed, began, requests, l.outlived())
		case err == nil:
			l.observeBeat(ctx, OutcomeLost, began, requests, l.lostError())
			return false
		default:
			l.observeBeat(ctx, OutcomeStoreFailed, began, requests, err)
		}
	}
}

// renew reports whether the lease lasts for so long from now on, or longer, and
// returns the number of requests. The time now is l.wall's, limit is not.
func (l *Lock) renew(ctx context.Context, limit, now time.Time, lease time.Duration) (bool, int, error) {
	until := later(now.Add(lease), time.UnixMicro(l.until.Load()))
	renewal := driver.Renewal{Name: l.claim.Name, Token: l.claim.Token, Now: now, Until: until, DeleteAfter: keepHeld(until)}
	r := retries{locker: l.locker, clock: l.clock, until: limit}
	ok, err := r.send(ctx, "renew", func(ctx context.Context) (bool, error) {
		row, ok, err := l.locker.store.Renew(ctx, &renewal)
		if err == nil && !ok && row.Token == renewal.Token && !row.Until.Before(until) {
			until, ok = row.Until, true // a copy of a request of this lock came first
		}
		return ok, err
	})
	if ok {
		l.until.Store(until.UnixMicro())
	}
	return ok, r.sent, err
}

var errOutlived = errors.New("still running after its context has ended; its lease is renewed for as long as it runs: let the work return when its context ends")

// outlived returns an error once, if the work has outlived its context. Package
// middleware reports the records of a batch.
func (l *Lock) outlived() error {
	t := l.timing
	soon := t.renew && (t.deadline.IsZero() || l.clock.Now().Before(t.outermost.Add(-t.overtimeAhead())))
	if soon || l.beat.outlived || l.end.hasBegun() || invocation.BatchOf(l.ctx) != nil {
		return nil
	}
	l.beat.outlived = true
	return errOutlived
}

func (l *Lock) observeBeat(ctx context.Context, outcome Outcome, began time.Time, requests int, err error) {
	o := l.observation(outcome, began, requests, err)
	o.Op = "renew"
	l.beat.tell(func() { l.locker.report(ctx, o) })
}
