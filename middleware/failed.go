package middleware

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
)

// Failed is a record of a batch that failed.
type Failed[R any] struct {
	Record R
	Ended  time.Time // when it had failed
	// Err is why it failed. If the function given to [OnFailed] sets it to nil,
	// the record is acknowledged.
	Err error
}

// onFailed is the function given to [OnFailed].
type onFailed[R any] = func(ctx context.Context, failed []*Failed[R])

// onFailedOf returns the function given to OnFailed, or nil. It panics if that
// is for other records.
func onFailedOf[R any](given any) onFailed[R] {
	f, ok := given.(onFailed[R])
	if given != nil && !ok {
		failed := reflect.TypeOf(given).In(1).Elem().Elem()
		refuse("OnFailed was given a function for %s, but each record is of type %s: let the function take that", failed.Field(0).Type, reflect.TypeFor[R]())
	}
	return f
}

// tellFailed calls the function given to OnFailed with the records that failed,
// and replaces their errors by what it left.
func (d *delivery[R]) tellFailed(errs []error) {
	var failed []*Failed[R]
	var tasks []*task[R]
	for i, err := range errs {
		if err != nil {
			t := &d.tasks[i]
			failed = append(failed, &Failed[R]{Record: *t.record, Ended: t.ended, Err: err})
			tasks = append(tasks, t)
		}
	}
	switch {
	case failed == nil:
		return
	case d.onFailed == nil:
		d.warnOfPermanent(d.ctx, errs)
		return
	}
	d.tell(failed, tasks)
	for i, t := range tasks {
		errs[t.index] = failed[i].Err
	}
}

// warnOfPermanent warns that nothing moves a record that failed for good. For a
// batch inside a record, that is up to the batch around it: if all that failed
// inside did so for good, it moves its record, or warns.
func (d *delivery[R]) warnOfPermanent(ctx context.Context, errs []error) {
	if _, inside := invocation.RecordClaimOf(ctx); inside || !slices.ContainsFunc(errs, isPermanent) {
		return
	}
	d.permanentOnce.Do(func() {
		add := "an OnFailed that does"
		if eventkind.OfRecord(reflect.TypeFor[R]()) == eventkind.SQS {
			add = "redelivery.SQS with the URL of a dead-letter queue, or an OnFailed of your own"
		}
		d.engine.Logger.WarnContext(ctx, "lambdalock: a record failed for good, with middleware.Permanent or because an earlier run was interrupted, but is returned like any other, because nothing moves it elsewhere: add "+add)
	})
}

// tellInTurn calls the function given to OnFailed with a record that failed
// with Permanent and has others behind it, and replaces the error by what it
// left, also if it ends its goroutine.
func (d *delivery[R]) tellInTurn(t *task[R], err *error) {
	if d.onFailed == nil || t.behind == nil || !isPermanent(*err) {
		return
	}
	f := &Failed[R]{Record: *t.record, Ended: clock.From(d.ctx).Now(), Err: *err}
	defer func() { *err = f.Err }()
	d.tell([]*Failed[R]{f}, []*task[R]{t})
}

// tell calls the function given to OnFailed with the records of tasks, which
// failed. A panic is reported with the first one's key.
func (d *delivery[R]) tell(failed []*Failed[R], tasks []*task[R]) {
	ctx, cancel := beforeAnswer(d.ctx)
	defer cancel()
	ctx = invocation.WithFailedClaims(ctx, func(i int) *invocation.RecordClaim { return &tasks[i].claim })
	if panicked := caught(func() { d.onFailed(ctx, slices.Clone(failed)) }); panicked != nil { // f may change the order
		d.reportPanic(d.ctx, tasks[0].key, panicked)
	}
}

// beforeAnswer returns a context that leaves time before its parent's deadline
// to answer.
func beforeAnswer(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	c := clock.From(ctx)
	left := deadline.Sub(c.Now())
	return c.WithDeadlineCause(ctx, deadline.Add(-min(invocation.TimeToAnswer, left/2)), nil)
}
