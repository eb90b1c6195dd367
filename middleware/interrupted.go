package middleware

import (
	"context"
	"reflect"

	"github.com/lambdalock/lambdalock/lock"
)

// InterruptedPolicy says what to do with an event of which an earlier run began
// and nothing is known of its end: [Run], [Ask], [AskFor], [Fail] or [Skip].
type InterruptedPolicy interface {
	forInterrupted() interruption
}

// interruption is what an InterruptedPolicy makes the wrapper do.
type interruption struct {
	decide   func(context.Context, *lock.InterruptedError) (*lock.Completion, error) // nil: the handler runs
	skips    bool                                                                    // decide completes the event without knowing whether the work was done
	question any                                                                     // a func(context.Context, E) (result any, done bool, err error); nil: nothing is asked
	gives    reflect.Type                                                            // the result of the question; nil: none
	answers  reflect.Type                                                            // the handler's result; nil: none
}

// Run is the [InterruptedPolicy] that runs the handler again.
var Run InterruptedPolicy = runPolicy{}

type runPolicy struct{}

func (runPolicy) forInterrupted() interruption { return interruption{} }

func (p Policy) forInterrupted() interruption {
	if p.policy().action == skip {
		return interruption{decide: lock.SkipInterrupted, skips: true}
	}
	return interruption{decide: lock.FailInterrupted}
}

// Ask calls f to find out whether the interrupted run has had its effect, for
// example whether there is a payment with the id of the order. f runs under the
// lock, which [lock.FromContext] finds. If it returns true, the event is
// completed, and answered as [OnCompleted] says. If it returns false, the
// handler runs. If it returns an error, the event fails with that and f is
// asked again when it comes again. E is what the key function takes. For a
// handler with a result, use [AskFor].
func Ask[E any](f func(ctx context.Context, event E) (done bool, err error)) InterruptedPolicy {
	if f == nil {
		refuse("Ask(nil): pass the function that finds out whether the work was done")
	}
	return askPolicy[E]{ask: func(ctx context.Context, event E) (any, bool, error) {
		done, err := f(ctx, event)
		return nil, done, err
	}}
}

// AskFor is [Ask] for handlers with a result, except a stream: if done is true,
// the event is completed with that result, which is stored and replayed like
// one of the handler, whatever its status and what [CompletedIf] and
// [RememberFor] say of it. R is the handler's result type; for a
// lambda.Handler, it is encoded as JSON unless it is bytes.
func AskFor[E, R any](f func(ctx context.Context, event E) (result R, done bool, err error)) InterruptedPolicy {
	if f == nil {
		refuse("AskFor(nil): pass the function that finds out whether the work was done")
	}
	return askPolicy[E]{gives: reflect.TypeFor[R](), ask: func(ctx context.Context, event E) (any, bool, error) { return f(ctx, event) }}
}

type askPolicy[E any] struct {
	ask   func(context.Context, E) (any, bool, error)
	gives reflect.Type
}

func (p askPolicy[E]) forInterrupted() interruption {
	return interruption{decide: askInContext, question: p.ask, gives: p.gives}
}

// question is what Ask was given, about one event.
type question func(context.Context) (*lock.Completion, error)

type questionKey struct{}

func askInContext(ctx context.Context, _ *lock.InterruptedError) (*lock.Completion, error) {
	return ctx.Value(questionKey{}).(question)(ctx)
}

// withQuestion returns a context for the claim of an event, with the question
// to ask about it, if there is one.
func withQuestion(ctx context.Context, q question) context.Context {
	if q == nil {
		return ctx
	}
	return context.WithValue(ctx, questionKey{}, q)
}

// questionOf returns a function that makes the question about an event, or nil
// if nothing is asked. It panics if the question is about other events.
func questionOf[E any](c *config) func(E) question {
	if c.interrupted.question == nil {
		return func(E) question { return nil }
	}
	ask, ok := c.interrupted.question.(func(context.Context, E) (any, bool, error))
	if !ok {
		refuse("Ask was given a function for %s, but the key function takes %s: let both take that", reflect.TypeOf(c.interrupted.question).In(1), reflect.TypeFor[E]())
	}
	return func(event E) question {
		return func(ctx context.Context) (*lock.Completion, error) {
			result, done, err := ask(ctx, event)
			if err != nil || !done {
				return nil, err
			}
			return c.interrupted.completion(result)
		}
	}
}

// completion returns the completion with that answer to the question. It is
// encoded as the handler's result would be: a []byte that stands for a
// json.RawMessage is JSON already.
func (i *interruption) completion(result any) (*lock.Completion, error) {
	if i.gives == nil {
		return &lock.Completion{}, nil
	}
	if v := reflect.ValueOf(result); v.IsValid() && v.Type().AssignableTo(i.answers) {
		result = v.Convert(i.answers).Interface()
	}
	doc, err := marshal(result)
	if err != nil {
		return nil, err
	}
	return &lock.Completion{Result: doc}, nil
}

// checkInterrupted panics if OnInterrupted does not fit the handler, or another
// option.
func (c *config) checkInterrupted(sig signature) {
	c.refuseUnknown()
	c.interrupted.answers = sig.result
	i := c.interrupted
	switch {
	case i.question != nil && i.gives == nil && sig.result != nil && !sig.streams():
		refuse("Ask has no result for the handler %s to answer with, and over HTTP the client would get status 409: use AskFor", sig.t)
	case i.gives != nil && sig.result == nil:
		refuse("AskFor needs a handler with a result, but %s has none: use Ask", sig.t)
	case i.gives != nil && !i.gives.AssignableTo(sig.result):
		refuse("AskFor was given a function that returns %s, but the handler returns %s: return %s", i.gives, sig.result, sig.result)
	case i.gives != nil && sig.streams():
		refuse("AskFor cannot store the stream that %s returns: use Ask", sig.t)
	}
}

// checkRawInterrupted is checkInterrupted for a lambda.Handler, whose result is
// whatever it says it is.
func (c *config) checkRawInterrupted() {
	c.refuseUnknown()
	c.interrupted.answers = rawType
}

// refuseUnknown panics if an event may run of which nobody can tell whether it
// was interrupted.
func (c *config) refuseUnknown() {
	if c.engine.OnInterrupted != nil && c.failOpen {
		refuse("FailOpen would run an event whose earlier run was interrupted, because only the lock table knows of it: leave FailOpen or OnInterrupted out")
	}
}

// UnknownError says that it is not known whether the handler has had its
// effect. AWS Lambda reports it as errorType "UnknownError".
type UnknownError struct {
	Err error // what the handler found
}

// Unknown returns err as an [*UnknownError], for a handler that cannot tell
// whether it has had its effect: for example because the request to the bank
// was sent, and no answer came. The body of a streamed response may fail with
// it, too. With [OnInterrupted], the event then counts as interrupted;
// otherwise it fails like any other. If err is nil, Unknown returns nil.
func Unknown(err error) error {
	if err == nil {
		return nil
	}
	return &UnknownError{err}
}

// Error implements error.
func (e *UnknownError) Error() string { return e.Err.Error() }

// Unwrap returns Err and [lock.ErrUnknown].
func (e *UnknownError) Unwrap() []error { return []error{e.Err, lock.ErrUnknown} }
