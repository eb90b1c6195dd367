package middleware

import (
	"context"

	"github.com/lambdalock/lambdalock/lock"
)

// handlerRun is one run of the handler.
type handlerRun struct {
	w        *wrapper
	ctx      context.Context // for the handler
	key      lock.Key
	lock     *lock.Lock // nil: none, because of FailOpen
	streamed bool       // the end of the result's stream ends the lock
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
func (r *handlerRun) complete(result []byte) {
	if r.lock != nil {
		_ = r.lock.Complete(result) // package lock has reported the error
	}
}

// storesResult reports whether the result of this run is stored for Replay.
func (r *handlerRun) storesResult() bool {
	return r.lock != nil && r.w.completed.action == replay
}

// locked runs work, which has no result, under the lock of key.
func (w *wrapper) locked(ctx context.Context, key lock.Key, keyErr error, work func(context.Context) error) error {
	run, instead := w.enter(ctx, key, keyErr)
	if instead != nil {
		return instead.failure()
	}
	defer run.release()
	err := work(run.ctx)
	if err == nil {
		run.complete(nil)
	}
	return err
}
