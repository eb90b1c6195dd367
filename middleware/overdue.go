package middleware

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/lambdalock/lambdalock/lock"
)

var (
	errOverdue      = errors.New("lambdalock: still running although its context has ended; the platform will kill the invocation at its deadline")
	errOverdueAlive = errors.New("lambdalock: still running although its context has ended; the invocation cannot end before it does")
)

// longestPatience is how long a handler may take to notice that its context has
// ended.
const longestPatience = 500 * time.Millisecond

// watch reports record i if its handler goes on although its context has ended. When
// stop returns, everything that watch started has ended too, because no goroutine may
// outlive the invocation. stop returns the observer's panic, if any.
func (d *delivery[R]) watch(ctx context.Context, i int) (stop func() *PanicError) {
	deadline, ok := d.ctx.Deadline()
	ends, bounded := ctx.Deadline()
	if !ok || !bounded || !ends.Before(deadline) {
		return func() *PanicError { return nil } // nobody kills, or it is too late to say anything
	}
	patience := min(deadline.Sub(ends)/2, longestPatience)
	began := time.Now()
	done := make(chan struct{})
	var failed *PanicError
	timer := time.AfterFunc(time.Until(ends.Add(patience)), func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				failed = &PanicError{Value: p, Stack: debug.Stack()}
			}
		}()
		d.reportOverdue(ctx, i, time.Since(began))
	})
	return func() *PanicError {
		if timer.Stop() {
			return nil
		}
		<-done
		return failed
	}
}

func (d *delivery[R]) reportOverdue(ctx context.Context, i int, held time.Duration) {
	lease, _ := lock.FromContext(ctx)
	err := errOverdue
	if !killedAtDeadline() {
		err = errOverdueAlive
	}
	d.report(ctx, lock.Observation{
		Outcome: OutcomeOverdue, Key: d.slots[i].key, Fence: lease.Fence, Until: lease.Until, Held: held,
		Err: &RecordError{Record: d.source.placeOf(&d.records[i], i), Err: err},
	})
}
