package lock

import (
	"context"
	"time"
)

// heartbeat renews a lease on a goroutine of its own until it is stopped, and
// stop waits for that goroutine: Lambda would freeze one that is left behind and
// thaw it inside a later invocation.
type heartbeat struct {
	quit     context.CancelFunc
	done     chan struct{}
	panicked any // by an observer or a log handler
}

func (h *heartbeat) stop() {
	h.quit()
	<-h.done
}

// raise panics on the caller's goroutine with what an observer panicked with on the
// heartbeat's, where it would have ended the process with every lock in it.
func (h *heartbeat) raise() {
	if h.panicked != nil {
		panic(h.panicked)
	}
}

// tell calls back, and notes a panic.
func (h *heartbeat) tell(report func()) {
	defer func() {
		if p := recover(); p != nil && h.panicked == nil {
			h.panicked = p
		}
	}()
	report()
}

// startHeartbeat ends the context of the work, by lose, with a [*LostError] when the
// lease could not be renewed in time. The renewals do not stop when the caller's
// context ends: work that goes on regardless still needs its lock, also where the
// platform reports a deadline that it does not enforce.
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-managed-instances-execution-environment.html
func (l *Lock) startHeartbeat(lose context.CancelCauseFunc) {
	ctx, quit := context.WithCancel(context.WithoutCancel(l.ctx))
	l.beat = &heartbeat{quit: quit, done: make(chan struct{})}
	go func() {
		defer close(l.beat.done)
		stopped := false
		defer func() {
			if !stopped { // also where an observer ended this goroutine
				lose(l.lostError())
			}
		}()
		stopped = l.renewUntilStopped(ctx)
	}()
}

// renewUntilStopped returns false when the lease was lost. Once the lock is being ended,
// a renewal that fails says nothing: what ends it may have come first.
func (l *Lock) renewUntilStopped(ctx context.Context) bool {
	for {
		limit := time.UnixMicro(l.until.Load()).Add(-l.timing.margin)
		if sleep(ctx, min(l.timing.beat, limit.Sub(l.locker.wall()))) != nil {
			return true
		}
		began, wall := time.Now(), l.locker.wall()
		// The wall clock goes on while an environment is frozen, unlike the timer above.
		left := limit.Sub(wall)
		if left <= 0 && l.ending.Load() != 0 {
			return true
		}
		if left <= 0 {
			l.observeBeat(ctx, Lost, began, 0, l.lostError())
			return false
		}
		until := wall.Truncate(time.Microsecond).Add(l.timing.lease)
		ok, requests, err := l.renew(ctx, began.Add(left), until)
		switch {
		case ctx.Err() != nil, l.ending.Load() != 0 && !ok:
			return true
		case err == nil && ok:
			l.until.Store(until.UnixMicro())
			l.observeBeat(ctx, Renewed, began, requests, nil)
		case err == nil:
			l.observeBeat(ctx, Lost, began, requests, l.lostError())
			return false
		default:
			l.observeBeat(ctx, StoreFailed, began, requests, err)
		}
	}
}

func (l *Lock) renew(ctx context.Context, limit, until time.Time) (bool, int, error) {
	s := sending{until: limit}
	ok, err := s.send(ctx, "renew", func(ctx context.Context) (bool, error) {
		row, ok, err := l.locker.store.Renew(ctx, &Renewal{
			Name: l.claim.Name, Token: l.claim.Token, Until: until, Keep: keepHeld(until),
		})
		// A copy of this renewal that came first makes the row ours, with this end or a later one.
		return ok || row.Token == l.claim.Token && !row.Until.Before(until), err
	})
	return ok, s.requests, err
}

func (l *Lock) observeBeat(ctx context.Context, kind Kind, began time.Time, requests int, err error) {
	if l.locker.silent(ctx, kind) {
		return
	}
	now := time.Now()
	l.beat.tell(func() {
		l.locker.Report(ctx, Observation{
			Kind: kind, Key: l.key, Fence: l.row.Fence, Until: time.UnixMicro(l.until.Load()),
			Duration: now.Sub(began), Held: now.Sub(l.decided), Requests: requests, Err: err,
		})
	})
}
