package lock

import (
	"context"
	"time"
)

// heartbeat renews a lease on a goroutine of its own until it is stopped, and
// stop waits for that goroutine: Lambda would freeze one that is left behind and
// thaw it inside a later invocation.
type heartbeat struct {
	quit context.CancelFunc
	done chan struct{}
}

func (h *heartbeat) stop() {
	h.quit()
	<-h.done
}

// startHeartbeat returns the context of the work, which ends with a [*LostError]
// as its cause when the lease could not be renewed in time. The renewals do not
// stop when the caller's context ends: work that goes on regardless still needs
// its lock, also where the platform reports a deadline that it does not enforce.
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-managed-instances-execution-environment.html
func (l *Lock) startHeartbeat(parent context.Context) (context.Context, *heartbeat) {
	work, lose := context.WithCancelCause(parent)
	ctx, quit := context.WithCancel(context.WithoutCancel(parent))
	h := &heartbeat{quit: quit, done: make(chan struct{})}
	go func() {
		defer close(h.done)
		if !l.renewUntilStopped(ctx) {
			lose(l.lostError())
			return
		}
		lose(nil)
	}()
	return work, h
}

// renewUntilStopped returns false when the lease was lost.
func (l *Lock) renewUntilStopped(ctx context.Context) bool {
	for {
		limit := time.UnixMicro(l.until.Load()).Add(-l.timing.margin)
		if pause(ctx, min(l.timing.lease/3, time.Until(limit))) != nil {
			return true
		}
		began := time.Now()
		// The wall clock goes on while an environment is frozen, unlike the timer above.
		left := limit.Sub(began.Round(0))
		if left <= 0 {
			l.observeBeat(ctx, Lost, began, 0, l.lostError())
			return false
		}
		until := began.Round(0).Truncate(time.Microsecond).Add(l.timing.lease)
		ok, requests, err := l.renew(ctx, began, left, until)
		switch {
		case ctx.Err() != nil:
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

func (l *Lock) renew(ctx context.Context, now time.Time, left time.Duration, until time.Time) (bool, int, error) {
	s := sending{until: now.Add(left)}
	ok, err := s.send("renew", ctx, now, func(ctx context.Context) (bool, error) {
		row, ok, err := l.locker.store.Renew(ctx, &Renewal{
			Name: l.claim.Name, Token: l.claim.Token, Until: until, Keep: l.locker.keep(until),
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
	l.locker.Report(ctx, Observation{
		Kind: kind, Key: l.key, Fence: l.row.Fence, Until: time.UnixMicro(l.until.Load()),
		Duration: now.Sub(began), Held: now.Sub(l.decided), Requests: requests, Err: err,
	})
}
