package middleware

import (
	"context"
	"errors"
	"sync"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// wrapper is what all invocations of one wrapped handler share.
type wrapper struct {
	*settings
	locker      *lock.Locker
	storeName   string    // in observations
	noEventOnce sync.Once // for the warning that Replay has nothing to replay
	// permanentOnce is for the warning that nothing moves a record elsewhere.
	permanentOnce sync.Once
}

func newWrapper(s *settings) *wrapper {
	if s.store == nil {
		s.store = DefaultStore("")
	}
	warmUp(s.store)
	if _, ok := s.store.(*memstore.Store); ok && inLambda() {
		s.engine.Logger.Warn("lambdalock: the locks are in the memory of this execution environment and protect nothing from the others: leave out the option Store to keep them in the DynamoDB table named in LOCK_TABLE_NAME")
	}
	locker, err := lock.New(s.store, &s.engine)
	if err != nil {
		panic(err.Error())
	}
	return &wrapper{settings: s, locker: locker, storeName: driver.Describe(s.store)}
}

// enter decides whether the handler runs. If it does, the answer is nil.
func (w *wrapper) enter(ctx context.Context, keys keySet, keyErr error) (handlerRun, *answer) {
	key := keys.Key
	run := handlerRun{w: w, ctx: ctx, key: key}
	if keyErr != nil {
		if errors.Is(keyError(keyErr), keyfuncs.ErrNoLock) {
			w.report(ctx, lock.Observation{Outcome: OutcomeNoLock})
			return run, nil
		}
		return run, w.answerWithoutKey(ctx, key, keyErr)
	}
	if w.completed.action == replay && key.Event == "" {
		w.warnOfNoEvent(ctx) // before the lock is taken, because a log handler may panic
	}
	acquired, err := w.acquire(ctx, w.locker, keys)
	if err == nil {
		run.lock, run.ctx = acquired, acquired.Context()
		return run, nil
	}
	var completed *lock.CompletedError
	switch {
	case errors.As(err, &completed):
		return run, w.answerCompleted(completed, err)
	case errors.Is(err, lock.ErrHeld):
		return run, &answer{action: w.held.action, response: w.held.response, err: err}
	case w.failOpen && ctx.Err() == nil && unanswered(err):
		w.report(ctx, lock.Observation{Outcome: OutcomeUnlocked, Key: key, Err: err})
		run.ctx = driver.NewContext(ctx, nil)
		return run, nil
	}
	return run, &answer{action: fail, err: err}
}

func (w *wrapper) warnOfNoEvent(ctx context.Context) {
	w.noEventOnce.Do(func() {
		w.engine.Logger.WarnContext(ctx, "lambdalock: OnCompleted(Replay) has nothing to replay, because the key has no Event: every duplicate runs again; give the key one with keyfuncs.Once or keyfuncs.EventFrom")
	})
}

// answerCompleted returns the answer to an event that was already completed or
// is stale. Replay without a stored result skips it.
func (w *wrapper) answerCompleted(completed *lock.CompletedError, err error) *answer {
	a := &answer{action: w.completed.action, result: completed.Result, err: err}
	if a.action == replay && a.result == nil {
		a.action = skip
	}
	return a
}

// answerWithoutKey returns the answer to an event for which the key function
// returned err.
func (w *wrapper) answerWithoutKey(ctx context.Context, key lock.Key, err error) *answer {
	e := keyError(err)
	if errors.Is(e, keyfuncs.ErrIgnore) {
		w.report(ctx, lock.Observation{Outcome: OutcomeIgnored, Key: key, Err: err})
		return &answer{action: skip}
	}
	w.report(ctx, lock.Observation{Outcome: lock.OutcomeRefused, Key: key, Err: e})
	return &answer{action: fail, err: e}
}

// keyError returns err as a *lock.NoKeyError, because Lambda reports the type
// of the outermost error. A *lock.NoKeyError inside err is copied, because it
// may be one value for all events.
func keyError(err error) *lock.NoKeyError {
	var inner *lock.NoKeyError
	if !errors.As(err, &inner) {
		return &lock.NoKeyError{Field: "event", Reason: "is refused by the key function", Err: err}
	}
	if inner == nil {
		return &lock.NoKeyError{Field: "event", Reason: "is refused by the key function, which returned a nil *lock.NoKeyError as its error: return a plain nil if nothing is wrong"}
	}
	if err == error(inner) {
		return inner
	}
	outer := *inner
	outer.Err = err
	return &outer
}

// unanswered reports whether the store gave no answer. A refusal is an answer:
// the store would refuse every event because of a missing table or permission,
// and FailOpen would then run all of them without a lock.
func unanswered(err error) bool {
	var e *lock.StoreError
	return errors.As(err, &e) && e.Temporary && !e.Answered
}
