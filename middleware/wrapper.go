package middleware

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// wrapper is what all invocations of one wrapped handler share.
type wrapper struct {
	*config
	locker      *lock.Locker
	storeName   string    // in observations
	noEventOnce sync.Once // for the warning that Replay has nothing to replay
}

func newWrapper(c *config) *wrapper {
	if c.store == nil {
		c.store = DefaultStore("")
	}
	warmUp(c.store)
	if _, ok := c.store.(*memstore.Store); ok && inLambda() {
		c.engine.Logger.Warn("lambdalock: the locks are in the memory of this execution environment and protect nothing from the others: leave out the option Store to keep them in the DynamoDB table named in LOCK_TABLE_NAME")
	}
	locker, err := lock.New(c.store, &c.engine)
	if err != nil {
		panic(err.Error())
	}
	return &wrapper{config: c, locker: locker, storeName: driver.Describe(c.store)}
}

// enter decides whether the handler runs. If it does, the answer is nil. x is
// nil if the handler has no result.
func (w *wrapper) enter(ctx context.Context, x exchange, keys keySet, keyErr error) (handlerRun, *answer) {
	key := keys.Key
	run := handlerRun{w: w, ctx: ctx, key: key, exchange: x}
	if keyErr != nil {
		if errors.Is(keyError(keyErr), keyfuncs.ErrNoLock) {
			w.report(ctx, lock.Observation{Outcome: OutcomeNoLock})
			run.ctx = invocation.WithRemember(ctx, w.engine.Remember)
			return run, nil
		}
		return run, run.answerWithoutKey(keyErr)
	}
	if w.completed.action == replay && key.Event == "" {
		w.warnOfNoEvent(ctx) // before the lock is taken, because a log handler may panic
	}
	acquired, err := w.acquire(withQuestion(ctx, keys.question), w.locker, keys)
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
		run.ctx = invocation.WithRemember(driver.NewContext(ctx, nil), w.engine.Remember)
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
func (r *handlerRun) answerWithoutKey(err error) *answer {
	e := keyError(err)
	if errors.Is(e, keyfuncs.ErrIgnore) {
		r.w.report(r.ctx, lock.Observation{Outcome: OutcomeIgnored, Key: r.key, Err: err})
		return &answer{action: skip}
	}
	at := level(lock.OutcomeRefused)
	if r.exchange != nil && r.exchange.blamesClient(e) {
		at = slog.LevelInfo
	}
	r.w.reportAt(r.ctx, at, lock.Observation{Outcome: lock.OutcomeRefused, Key: r.key, Err: e})
	return &answer{action: fail, err: e}
}

// unanswered reports whether the store gave no answer. A refusal is an answer:
// the store would refuse every event because of a missing table or permission,
// and FailOpen would then run all of them without a lock.
func unanswered(err error) bool {
	var e *lock.StoreError
	return errors.As(err, &e) && e.Temporary && !e.Answered
}
