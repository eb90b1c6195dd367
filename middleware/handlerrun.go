package middleware

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"reflect"
	"time"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/lock"
)

// handlerRun is one run of the handler.
type handlerRun struct {
	w        *wrapper
	ctx      context.Context // for the handler
	key      lock.Key
	lock     *lock.Lock        // nil: none, because of FailOpen or ErrNoLock
	gateway  eventkind.Gateway // that waits for the response; NoGateway: none
	nobody   bool              // nothing in the key tells the sender of the request from others
	streamed bool              // the end of the result's stream ends the lock
}

// release is deferred, so that the lock is released after a panic or
// runtime.Goexit too. It does not recover: the runtime reports the panic as it
// would without a wrapper. After complete it does nothing.
func (r *handlerRun) release() {
	if r.lock != nil && !r.streamed {
		_ = r.lock.Release() // package lock has reported the error
	}
}

// complete completes the event after the handler succeeded, and releases the
// lock. If that fails, the handler's result still counts.
func (r *handlerRun) complete(result []byte, remember time.Duration) {
	if r.lock != nil {
		_ = r.lock.CompleteWith(lock.Completion{Result: result, Remember: remember}) // package lock has reported the error
	}
}

// completeFor completes the event as RememberFor says of the result. stored is
// what is kept of it; nil: nothing.
func (r *handlerRun) completeFor(stored []byte, result any) {
	remember := time.Duration(0)
	if r.w.rememberFor != nil {
		if remember = r.w.rememberFor(result); remember <= 0 {
			stored, remember = nil, 0
		}
	}
	r.complete(stored, remember)
}

// settle ends the lock after a handler whose result is not an error. It does
// nothing if the event is not completed, because release follows.
func (r *handlerRun) settle(result *reflect.Value) {
	if r.lock == nil {
		return
	}
	v := result.Interface()
	if body := bodyOf(v); body != nil {
		defer func() {
			if !r.streamed { // nobody reads it, for example because a callback panicked
				closeBody(body)
			}
		}()
	}
	if r.stream(result) {
		return
	}
	doc, err := []byte(nil), error(nil)
	if r.storesResult() || r.gateway != eventkind.NoGateway || r.w.http.byValue {
		doc, err = encode(v)
		r.judge(doc)
	}
	if !r.completes(v, doc) {
		return
	}
	if !r.storesResult() {
		doc, err = nil, nil
	}
	if err = cmp.Or(err, r.withheld(doc)); err != nil {
		r.reportDropped(err)
		doc = nil
	}
	r.completeFor(doc, v)
}

// judge takes a result for a response if it has a status and neither types nor
// payload show whether there is a gateway. doc is its JSON form. A status means
// the same to all gateways, so any will do.
func (r *handlerRun) judge(doc []byte) {
	if r.gateway != eventkind.NoGateway || !r.w.http.byValue {
		return
	}
	if status := statusOf(doc, eventkind.Payload1); status >= http.StatusContinue && status < 600 {
		r.gateway = eventkind.Payload1
	}
}

// completes reports whether a result completes the event. doc is its JSON form
// if a gateway may wait for it.
func (r *handlerRun) completes(result any, doc []byte) bool {
	switch {
	case len(doc) > longestResult(r.gateway):
		return false
	case r.w.completedIf != nil:
		return r.w.completedIf(result)
	case r.gateway != eventkind.NoGateway:
		return completesWith(doc, r.gateway)
	}
	return true
}

// storesResult reports whether the result of this run is stored for Replay,
// which is the default over HTTP. A key without an Event has no duplicates.
func (r *handlerRun) storesResult() bool {
	byDefault := !r.w.completed.chosen && r.gateway != eventkind.NoGateway
	return r.key.Event != "" && (byDefault || r.w.completed.action == replay)
}

// locked runs work, which has no result, under the lock of key.
func (w *wrapper) locked(ctx context.Context, key lock.Key, keyErr error, work func(context.Context) error) error {
	run, instead := w.enter(ctx, keySet{Key: key}, keyErr)
	if instead != nil {
		return instead.failure()
	}
	defer run.release()
	if err := work(run.ctx); err != nil {
		return err
	}
	run.complete(nil, 0)
	return nil
}

// latest runs work as [lock.Locker.Latest] does.
func (w *wrapper) latest(ctx context.Context, key lock.Key, keyErr error, work func(context.Context) error) error {
	if keyErr != nil {
		run, instead := w.enter(ctx, keySet{Key: key}, keyErr)
		if instead != nil {
			return instead.failure()
		}
		return work(run.ctx)
	}
	ran := false
	err := w.locker.Latest(ctx, key, func(ctx context.Context) error {
		ran = true
		return work(ctx)
	})
	var completed *lock.CompletedError
	if !ran && errors.As(err, &completed) {
		return w.answerCompleted(completed, err).failure()
	}
	var owed *invocation.OwedError
	if errors.As(err, &owed) && !errors.As(owed.Err, new(*PermanentError)) { // the event comes again anyway
		return owed.Err
	}
	return err
}
