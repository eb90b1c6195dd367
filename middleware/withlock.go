package middleware

import (
	"context"
	"errors"
	"reflect"
	"sync"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// WithLock wraps a Lambda handler so that it runs only while it owns the lock of
// its event's key, and not at all for an event that was already completed. It
// gives back the type it was given, so it can be passed to lambda.Start or
// lambda.StartWithOptions, wrapped again, or called in a test.
//
// handler is any function that lambda.Start accepts:
//
//	func ()
//	func (TIn)
//	func () error
//	func (TIn) error
//	func () (TOut, error)
//	func (TIn) (TOut, error)
//	func (context.Context)
//	func (context.Context, TIn)
//	func (context.Context) error
//	func (context.Context, TIn) error
//	func (context.Context) (TOut, error)
//	func (context.Context, TIn) (TOut, error)
//
// or a [lambda.Handler], whose payload is decoded for the key alone. TIn must be
// the key function's event type, a pointer to it, or implement it; a handler that takes no event
// needs [keyfuncs.Static]. A handler that returns no error cannot tell Lambda to
// deliver an event again: it is accepted with OnHeld(Skip) only, and panics where it
// would have failed.
//
// A result that is streamed, declared as io.Reader or as the streaming response of
// a Function URL or of API Gateway, keeps the lock until the runtime has read it to
// its end; if it is closed before, the event counts as failed.
//
// A handler whose result is an HTTP response (of API Gateway, a load balancer or a
// Function URL, also by pointer or streamed) answers a request for which the key
// function returns a *lock.KeyError of the client (Client is set, as by
// [keyfuncs.IdempotencyKey] for a missing Idempotency-Key) with status 400 and what is
// wrong, as JSON. Every other error is returned, and becomes a 5xx: an event of another
// source or the wrong key function is the operator's mistake, and alarms should see it.
//
// WithLock panics, with one line that says what to change, when handler, key
// function and options do not fit together. A missing table name or missing
// credentials are not known then: they make every invocation fail with a
// *lock.ConfigError.
//
// [lambda.Handler]: https://pkg.go.dev/github.com/aws/aws-lambda-go/lambda#Handler
func WithLock[E, H any](key keyfuncs.Func[E], handler H, opts ...Option) H {
	if key == nil {
		panic("lambdalock: the key function is nil")
	}
	s := newSettings(reflect.TypeFor[E](), opts)
	if s.each != (eachSettings{}) {
		panic("lambdalock: Concurrency, OrderByName and RaisePanics are for handlers of single records, as of EachSQSMessage")
	}
	wrap := wrapper[E, H](key, handler, s) // before a store is opened: it may panic
	return wrap(newDecorator(s))
}

// decorator is what all invocations of one wrapped handler share.
type decorator struct {
	settings
	locker  *lock.Locker
	noEvent sync.Once // warns that there is nothing to replay
}

func newDecorator(s *settings) *decorator {
	if s.store == nil {
		s.store = DefaultStore(s.table)
	}
	if d, ok := s.store.(*defaultStore); ok {
		d.warmUp()
	}
	if _, ok := s.store.(*memstore.Store); ok && inLambda() {
		s.logger().Warn("lambdalock: the locks are in the memory of this execution environment and protect nothing from the others: leave Store out to keep them in the DynamoDB table named in LOCK_TABLE_NAME")
	}
	locker, err := lock.New(s.store, &s.engine)
	if err != nil {
		panic(err.Error())
	}
	return &decorator{settings: *s, locker: locker}
}

// locked runs work, which has no result, under the lock of key.
func (d *decorator) locked(ctx context.Context, key lock.Key, keyErr error, work func(context.Context) error) error {
	in, instead := d.enter(ctx, key, keyErr)
	if instead != nil {
		if instead.kind == fail {
			return instead.err
		}
		return nil
	}
	defer in.leave()
	err := work(in.ctx)
	in.settle(err, nil)
	return err
}

// handlerRun is one run of the handler.
type handlerRun struct {
	d       *decorator
	ctx     context.Context // for the handler
	key     lock.Key
	lock    *lock.Lock // nil: none, as FailOpen asked
	pending bool       // a stream settles it later
}

// answer is what to return instead of running the handler.
type answer struct {
	kind  kind
	value any    // of respond
	body  []byte // of replay
	err   error  // of fail

	refused *lock.KeyError // of fail, when there is no key
}

// enter decides whether the handler runs: answer is nil if it does.
func (d *decorator) enter(ctx context.Context, key lock.Key, keyErr error) (handlerRun, *answer) {
	in := handlerRun{d: d, key: key, ctx: ctx}
	if keyErr != nil {
		return in, d.withoutKey(ctx, key, keyErr)
	}
	if d.completed.kind == replay && key.Event == "" {
		d.noEvent.Do(func() { // before the lock is taken: a log handler may panic
			d.logger().WarnContext(ctx, "lambdalock: OnCompleted(Replay) has nothing to replay, because the key has no Event: every duplicate runs again; give the key one with keyfuncs.Once or keyfuncs.EventFrom")
		})
	}
	var err error
	if in.lock, err = d.locker.Acquire(ctx, key); err == nil {
		in.ctx = in.lock.Context()
		return in, nil
	}
	var completed *lock.CompletedError
	if errors.As(err, &completed) {
		a := &answer{kind: d.completed.kind, body: completed.Result, err: err}
		if a.kind == replay && a.body == nil {
			a.kind = skip
		}
		return in, a
	}
	if errors.Is(err, lock.ErrHeld) {
		return in, &answer{kind: d.held.kind, value: d.held.value, err: err}
	}
	if d.failOpen && ctx.Err() == nil && unanswered(err) {
		d.report(ctx, lock.Observation{Outcome: OutcomeUnlocked, Key: key, Err: err})
		return in, nil
	}
	return in, &answer{kind: fail, err: err}
}

// unanswered reports whether the store said nothing. A refusal is an answer: what a
// missing table or permission refuses would be refused for ever, so FailOpen would
// run every event without a lock.
func unanswered(err error) bool {
	var e *lock.StoreError
	return errors.As(err, &e) && e.Temporary && !e.Rejected
}

// withoutKey reports under a *lock.KeyError whatever a key function returned.
func (d *decorator) withoutKey(ctx context.Context, key lock.Key, err error) *answer {
	e := keyError(err)
	if errors.Is(e, keyfuncs.ErrIgnore) {
		d.report(ctx, lock.Observation{Outcome: OutcomeIgnored, Key: key, Err: err})
		return &answer{kind: skip}
	}
	d.report(ctx, lock.Observation{Outcome: lock.OutcomeRefused, Key: key, Err: e})
	return &answer{kind: fail, err: e, refused: e}
}

// keyError is the *lock.KeyError of which err speaks, because Lambda reports the type of
// the outermost error. One that is wrapped is copied: it may be the same value for all
// events.
func keyError(err error) *lock.KeyError {
	var inner *lock.KeyError
	switch found := errors.As(err, &inner); {
	case !found:
		return &lock.KeyError{Field: "event", Reason: "is refused by the key function", Err: err}
	case inner == nil:
		return &lock.KeyError{Field: "event", Reason: "is refused by the key function, which returned a nil *lock.KeyError as its error: return a plain nil where nothing is wrong"}
	case err == error(inner):
		return inner
	}
	e := *inner
	e.Err = err
	return &e
}

// leave is deferred: it frees the lock after a panic or runtime.Goexit, without
// recovering, so that the runtime reports them as it would without a decorator. It
// does nothing when the invocation was settled, or a stream will.
func (in *handlerRun) leave() {
	if in.lock != nil && !in.pending {
		_ = in.lock.Release() // the engine has reported it
	}
}

// settle ends the lock after the handler returned err. The result is kept if it is
// to be replayed. A failure to record is reported by the engine and never replaces
// the handler's result.
func (in *handlerRun) settle(err error, result []byte) {
	if in.lock == nil || err != nil {
		return // leave releases
	}
	if in.d.completed.kind != replay {
		result = nil
	}
	_ = in.lock.Complete(result)
}

// replays tells whether the result of this run is to be stored.
func (in *handlerRun) replays(err error) bool {
	return in.lock != nil && err == nil && in.d.completed.kind == replay
}
