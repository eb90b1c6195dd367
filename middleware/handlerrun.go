package middleware

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"reflect"
	"time"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/lock"
)

// exchange is all that the core knows of HTTP: an event, which may be a request
// that a client waits for, and its result.
type exchange interface {
	// encode returns the JSON form of a result that judge looks at, or always. Of a
	// streamed one that is what comes before the body, and body says where the body
	// is; nil: in the result itself, which is not stored.
	encode(result any, always bool) (doc []byte, body *io.Reader, err error)
	// withBody adds the body to the JSON form of a streamed result.
	withBody(doc, body []byte) []byte
	// judge says what is to become of a result with that JSON form.
	judge(doc []byte) verdict
	// blamesClient reports whether err is the mistake of a client, who gets a
	// response that says so. Anybody can make one, so no alarm is to see it.
	blamesClient(err error) bool
	// reply returns what the caller gets instead of a, which is what the policies
	// say; never replay. result is the handler's result type.
	reply(run *handlerRun, a *answer, result reflect.Type) *answer
}

// verdict is what an exchange says about a result.
type verdict struct {
	fits      bool  // it is short enough to be sent
	completes bool  // the event, unless CompletedIf says otherwise
	kept      bool  // for Replay, unless OnCompleted says otherwise
	withheld  error // why it must not be replayed; nil: it may
}

// handlerRun is one run of the handler.
type handlerRun struct {
	w        *wrapper
	ctx      context.Context // for the handler
	key      lock.Key
	lock     *lock.Lock // nil: none, because of FailOpen or ErrNoLock
	exchange exchange   // nil: the handler has no result
	streamed bool       // the end of the result's stream ends the lock
}

// begin decides whether the handler runs for the keys that key finds in event.
// If it does, the answer is nil. payload is what the handler was given.
func begin[A any](ctx context.Context, w *wrapper, key keySource[A], event A, payload any) (handlerRun, *answer) {
	x, keys, err := w.ask(ctx, payload, func(ctx context.Context) (keySet, error) { return key(ctx, event) })
	for _, k := range keys.each() {
		w.ofTenant(ctx, k)
	}
	keys.question = w.asksFor(x, keys)
	if err == nil {
		if e := w.refuseLoss(ctx, keys.Key, payload); e != nil {
			return handlerRun{w: w, ctx: ctx, key: keys.Key, exchange: x}, &answer{action: fail, err: e}
		}
	}
	return w.enter(ctx, x, keys, err)
}

var errNotSent = errors.New("lambdalock: the result of AskFor is longer than Lambda or the gateway takes: return a shorter one")

// asksFor returns the question of keys, whose answer is kept only where the
// result of the handler would be.
func (w *wrapper) asksFor(x exchange, keys keySet) question {
	ask := keys.question
	if ask == nil || x == nil {
		return ask
	}
	return func(ctx context.Context) (*lock.Completion, error) {
		c, err := ask(ctx)
		if c == nil || c.Result == nil {
			return c, err
		}
		run := handlerRun{w: w, ctx: ctx, key: keys.Key}
		v := x.judge(c.Result)
		kept := run.keeps(v)
		if kept && v.withheld == nil && !v.fits {
			return nil, errNotSent // the handler's own would not complete the event either
		}
		if kept && v.withheld != nil {
			run.reportDropped(v.withheld)
		}
		if !kept || v.withheld != nil {
			c.Result = nil
		}
		return c, err
	}
}

// release is deferred, so that the lock is released after a panic or
// runtime.Goexit too. It does not recover: the runtime reports the panic as it
// would without a wrapper. After complete it does nothing.
func (r *handlerRun) release() {
	if r.lock != nil && !r.streamed {
		_ = r.lock.Fail(nil) // package lock has reported the error
	}
}

// failed notes that the handler returned an error.
func (r *handlerRun) failed(err error) {
	if r.lock != nil {
		_ = r.lock.Fail(err) // package lock has reported the error
	}
}

// complete completes the event after the handler succeeded, and releases the
// lock. If that fails, the handler's result still counts.
func (r *handlerRun) complete(result []byte, remember time.Duration) {
	if r.lock != nil {
		_ = r.lock.CompleteWith(lock.Completion{Result: result, Remember: remember}) // package lock has reported the error
	}
}

// settle ends the lock after a handler whose result is not an error, or leaves
// that to the end of a stream. It does nothing if the event is not completed,
// because release follows.
func (r *handlerRun) settle(result *reflect.Value) {
	if r.lock == nil {
		return
	}
	v := result.Interface()
	head, body, err := r.exchange.encode(v, r.key.Event != "" && r.w.completed.action == replay)
	switch reader, ok := v.(io.Reader); {
	case body != nil && *body != nil:
		*body = r.stream(v, *body, head, true)
	case body == nil && ok && !isNil(v): // the runtime sends a nil pointer as the JSON null
		*result = reflect.ValueOf(r.stream(v, reader, head, false))
	default:
		r.finish(v, head, err)
	}
}

// finish completes the event, unless the result says otherwise. doc is the JSON
// form of the result.
func (r *handlerRun) finish(result any, doc []byte, err error) {
	completes, kept, withheld := r.judge(result, doc)
	if !completes {
		return
	}
	remember := time.Duration(0)
	if r.w.rememberFor != nil {
		remember = max(0, r.w.rememberFor(result))
		kept = kept && remember > 0
	}
	if err = cmp.Or(err, withheld); kept && err != nil {
		r.reportDropped(err)
	}
	if !kept || err != nil {
		doc = nil
	}
	r.complete(bytes.Clone(doc), remember) // a raw handler may return the payload, or a buffer that it uses again
}

// judge reports whether a result completes the event, and whether it is kept
// for Replay, unless it is withheld. A key without an Event has no duplicates.
func (r *handlerRun) judge(result any, doc []byte) (completes, kept bool, withheld error) {
	v := r.exchange.judge(doc)
	completes = v.fits && v.completes
	if v.fits && r.w.completedIf != nil {
		completes = r.w.completedIf(result)
	}
	return completes, r.keeps(v), v.withheld
}

// keeps reports whether a result is kept for Replay if it completes the event.
func (r *handlerRun) keeps(v verdict) bool {
	return r.key.Event != "" && (v.kept && !r.w.completed.chosen || r.w.completed.action == replay)
}

// reportDropped reports that Replay has no result to return.
func (r *handlerRun) reportDropped(err error) {
	o := lock.Observation{Outcome: lock.OutcomeResultDropped, Key: r.key, Err: err}
	if r.lock != nil {
		lease, _ := lock.FromContext(r.ctx)
		o.Key, o.Fence = lease.Key, lease.Fence
	}
	r.w.report(r.ctx, o)
}

// onError returns what OnError makes of a, or a itself. payload is what the
// handler was given.
func (r *handlerRun) onError(a *answer, payload any) *answer {
	if a.action != fail || r.w.onError == nil {
		return a
	}
	v, err := r.w.onError(r.ctx, a.err)
	switch {
	case err == nil && wouldLose(r.ctx, payload, v, a.err): // its source has to deliver the event again
	case err == nil:
		return &answer{action: respond, response: v}
	case !reflect.DeepEqual(err, a.err): // != panics for errors that cannot be compared, such as a slice
		return &answer{action: fail, err: err}
	}
	return a
}

// locked runs work, which has no result, under the lock of key. q is the
// question to ask if an earlier run was interrupted, or nil.
func (w *wrapper) locked(ctx context.Context, key lock.Key, keyErr error, q question, work func(context.Context) error) error {
	run, instead := w.enter(ctx, nil, keySet{Key: key, question: q}, keyErr)
	if instead != nil {
		return instead.failure()
	}
	defer run.release()
	if claim, _ := invocation.RecordClaimOf(ctx); claim != nil {
		claim.Unlocked = run.lock == nil
	}
	if err := work(run.ctx); err != nil {
		run.failed(err)
		return err
	}
	run.complete(nil, 0)
	return nil
}

// latest runs work as [lock.Locker.Latest] does.
func (w *wrapper) latest(ctx context.Context, key lock.Key, keyErr error, work func(context.Context) error) error {
	if keyErr != nil {
		return w.locked(ctx, key, keyErr, nil, work)
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
	if errors.As(err, &owed) && !isPermanent(owed.Err) { // the event comes again anyway
		return owed.Err
	}
	return err
}
