package middleware

import (
	"context"
	"errors"
	"reflect"

	"github.com/lambdalock/lambdalock/lock"
)

// Resume wraps a step of a workflow, or the handler of a callback, so that it
// runs under the lock that an earlier invocation handed over with
// [lock.HandOver]. ticket returns the lock.Ticket that the event carries.
//
// If the handler returns no error, the event for which the lock was acquired is
// completed and the lock released, unless the handler has handed it over again.
// It is remembered for as long as the function that acquired the lock would, or
// longer if [Remember] says so. If the handler fails, or [CompletedIf] rejects
// its result, the lock stays held until its lease ends, so that a retry can
// resume it with the same ticket: hand over leases that are long enough for the
// retries.
//
// A step whose event was already completed does not run, and [OnCompleted] says
// what it returns. Two deliveries of a step at the same time both run: see
// [lock.Locker.Resume]. The wrapped handler fails with a *lock.LostError if the
// lock was released or taken over, or with a *lock.StoreError,
// *lock.DeadlineError or *lock.ConfigError. OnHeld and FailOpen are refused.
// Resume panics like [WithLock].
func Resume[E, R any](ticket func(E) lock.Ticket, handler func(context.Context, E) (R, error), opts ...Option) func(context.Context, E) (R, error) {
	if ticket == nil {
		refuse("the function that finds the ticket is nil: return the field of the event that has the lock.Ticket")
	}
	if handler == nil {
		refuse(nilHandler)
	}
	sig := inspect(reflect.TypeOf(handler), reflect.TypeFor[E]())
	s := newSettings(reflect.TypeFor[E](), opts)
	checkStep(sig, s)
	h := httpOf(reflect.TypeFor[E](), sig.result)
	h.byValue = false // the result is for a workflow
	s.use(h)
	w := newWrapper(s)
	return func(ctx context.Context, event E) (R, error) {
		ctx, done := w.measure(ctx)
		defer done()
		gateway := w.http.gatewayOf(event)
		run, instead := w.resume(ctx, ticket(event))
		run.gateway = gateway
		if instead != nil {
			return resultOf[R](run.reply(instead, sig.result).values(&run, sig))
		}
		defer run.release()
		result, err := handler(run.ctx, event)
		if err != nil {
			return result, err
		}
		v := reflect.ValueOf(&result).Elem()
		_ = run.settle(&v) // it is nil, because OnHeld is refused
		return resultOf[R]([]reflect.Value{v, reflect.Zero(errorType)})
	}
}

// resumedLock is the lock of a step. Released, it stays held for a retry.
type resumedLock struct{ *lock.Lock }

// Release leaves the lock. After Complete it does nothing.
func (l resumedLock) Release() error {
	l.Leave()
	return nil
}

// resume decides whether the step runs. If it does, the answer is nil.
func (w *wrapper) resume(ctx context.Context, h lock.Ticket) (handlerRun, *answer) {
	lk, err := w.locker.Resume(ctx, h)
	if err == nil {
		return handlerRun{w: w, ctx: lk.Context(), key: lk.Lease().Key, lock: resumedLock{lk}}, nil
	}
	run := handlerRun{w: w, ctx: ctx}
	var completed *lock.CompletedError
	if errors.As(err, &completed) {
		run.key = completed.Key
		return run, w.answerCompleted(completed, err)
	}
	return run, &answer{action: fail, err: err}
}

// resultOf returns what a handler function returned.
func resultOf[R any](out []reflect.Value) (R, error) {
	result, _ := out[0].Interface().(R) // a nil interface stays nil
	err, _ := out[1].Interface().(error)
	return result, err
}

// checkStep panics if the options do not fit a handler that resumes.
func checkStep(sig signature, s *settings) {
	s.refuseEach()
	switch {
	case s.held.action != fail || s.held.wait > 0:
		refuse("OnHeld is for the handler that acquires the lock, because one that resumes never finds it held: leave it out")
	case s.failOpen:
		refuse("FailOpen is for the handler that acquires the lock: a step cannot complete the event without it: leave it out")
	case sig.streams():
		refuse("the step's result %s is streamed, but a workflow has no use for streams: return a value", sig.result)
	}
	checkPolicies(sig, s)
}
