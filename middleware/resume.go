package middleware

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"

	"github.com/lambdalock/lambdalock/lock"
)

// Resume wraps a step of a workflow, or the handler of a callback, so that it
// runs under the lock that an earlier invocation handed over with
// [lock.HandOver]. handle returns the lock.Handle that the event carries.
//
// If the handler returns no error, the event for which the lock was acquired is
// completed and the lock released, unless the handler has handed it over again.
// If the handler fails or panics, the lock stays held until its lease ends, so
// that a retry of the step can resume it with the same handle: leases that are
// handed over should be long enough for the retries. To release the lock after
// the last of them, call [lock.Locker.Resume] and [lock.Lock.Release].
//
// A step whose event was already completed does not run: the option
// [OnCompleted] says what it returns. Only the completion is remembered: a step
// that hands the lock over again runs again if it is retried. Two deliveries of
// a step at the same time both run; see [lock.Locker.Resume].
//
// The wrapped handler fails with a *lock.LostError if the lock was released or
// taken over, or with a *lock.StoreError, *lock.DeadlineError or
// *lock.ConfigError. The options are those of [WithLock] except OnHeld and
// FailOpen. The function needs permission for the namespace of the function
// that acquired the lock.
//
// Resume panics like [WithLock] if handler and options do not fit together.
func Resume[E, R any](handle func(E) lock.Handle, handler func(context.Context, E) (R, error), opts ...Option) func(context.Context, E) (R, error) {
	if handle == nil {
		refuse("the function that finds the handle is nil: return the field of the event that has the lock.Handle")
	}
	if handler == nil {
		refuse(nilHandler)
	}
	s := newSettings(reflect.TypeFor[E](), opts)
	checkStep(inspect[E](reflect.TypeOf(handler)), s)
	w := newWrapper(s)
	return func(ctx context.Context, event E) (R, error) {
		lk, err := w.locker.Resume(ctx, handle(event))
		if err != nil {
			return completedBefore[R](ctx, w, err)
		}
		defer lk.Leave() // does nothing after Complete
		result, err := handler(lk.Context(), event)
		if err == nil {
			_ = lk.Complete(w.stored(ctx, lk, result)) // package lock has reported the error
		}
		return result, err
	}
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

// completedBefore returns what a step returns instead of running, for the error
// of Resume.
func completedBefore[R any](ctx context.Context, w *wrapper, err error) (R, error) {
	var result R
	var completed *lock.CompletedError
	if !errors.As(err, &completed) || w.completed.action == fail {
		return result, err
	}
	if w.completed.action == replay && completed.Result != nil {
		d := json.NewDecoder(bytes.NewReader(completed.Result))
		d.UseNumber() // keeps all digits in a result that is declared as any
		if err := d.Decode(&result); err != nil {
			w.report(ctx, lock.Observation{Outcome: lock.OutcomeResultDropped, Key: completed.Key, Err: err})
		}
	}
	return result, nil
}

// stored returns the step's result as it is kept for Replay, or nil.
func (w *wrapper) stored(ctx context.Context, lk *lock.Lock, result any) []byte {
	if w.completed.action != replay {
		return nil
	}
	b, err := json.Marshal(result)
	if err != nil {
		lease := lk.Lease()
		w.report(ctx, lock.Observation{Outcome: lock.OutcomeResultDropped, Key: lease.Key, Fence: lease.Fence, Err: err})
		return nil
	}
	return b
}
