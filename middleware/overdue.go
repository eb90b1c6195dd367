package middleware

import (
	"context"
	"errors"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/lock"
)

var (
	errOverdue      = errors.New("lambdalock: still running after its context has ended; at its deadline Lambda reports the whole batch as timed out")
	errOverdueAlive = errors.New("lambdalock: still running after its context has ended; the invocation cannot end before it does")
)

// longestPatience is how long a handler may take to notice that its context has
// ended.
const longestPatience = 500 * time.Millisecond

// inTime returns the context for the handler of a record. That of a lock ends
// before the deadline. Without a lock it ends as early, because at the deadline
// itself the answer about the other records would be lost.
func (d *delivery[R]) inTime(ctx context.Context, t *task[R]) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok || !t.claim.Unlocked {
		return ctx, func() {}
	}
	c := clock.From(ctx)
	return c.WithDeadlineCause(ctx, deadline.Add(-invocation.Reserve(d.engine.Reserve, deadline.Sub(c.Now()))), nil)
}

// watchedHandler runs the handler of one record, and reports the record if the
// handler goes on after its context has ended.
func (d *delivery[R]) watchedHandler(ctx context.Context, t *task[R]) (err error) {
	stop := d.watch(ctx, t)
	defer func() { // the handler's error still says whether it knows its end
		if panicked := stop(); panicked != nil {
			err = errors.Join(panicked, err)
		}
	}()
	return t.handler(ctx)
}

// watch starts to watch a handler. stop stops watching and waits for the
// report, because no goroutine may outlive the invocation. It returns the panic
// of the observer, if any.
func (d *delivery[R]) watch(ctx context.Context, t *task[R]) (stop func() error) {
	deadline, ok := d.ctx.Deadline()
	end, bounded := ctx.Deadline()
	if !ok || !bounded || !end.Before(deadline) {
		return func() error { return nil } // there is no deadline, or no time left to report anything
	}
	patience := min(deadline.Sub(end)/2, longestPatience)
	c := clock.From(ctx)
	began := c.Now()
	reported := make(chan struct{})
	var panicked error
	timer := c.AfterFunc(end.Add(patience).Sub(began), func() {
		defer close(reported)
		panicked = caught(func() { d.reportOverdue(ctx, t, c.Now().Sub(began)) })
	})
	return func() error {
		if timer.Stop() {
			return nil
		}
		<-reported
		return panicked
	}
}

func (d *delivery[R]) reportOverdue(ctx context.Context, t *task[R], held time.Duration) {
	lease, _ := lock.FromContext(ctx)
	err := errOverdue
	if !onDemand() {
		err = errOverdueAlive
	}
	d.report(ctx, lock.Observation{
		Outcome: OutcomeOverdue, Key: t.key, Fence: lease.Fence, Until: lease.Until, HeldFor: held,
		Err: &RecordError{Record: d.place(t), Err: err},
	})
}
