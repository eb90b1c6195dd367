package middleware

import (
	"context"
	"fmt"
	"io"
	"reflect"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
	readerType  = reflect.TypeFor[io.Reader]()
)

// wrapper checks that handler, key function and options fit together, and panics if
// they do not. What it returns builds the wrapped handler.
func wrapper[E, H any](key keyfuncs.Func[E], handler H, s *settings) func(*decorator) H {
	switch h := any(handler).(type) {
	case nil:
		panic("lambdalock: the handler is nil")
	case lambda.Handler:
		return rawWrapper(key, h, handler, s)
	}
	shape := inspect[E](reflect.ValueOf(handler))
	checkPolicies(shape.t, s)
	if s.engine.CompleteWithin == 0 && answersHTTP(shape.result) {
		s.engine.CompleteWithin = DefaultAnswerWithin
	}
	return func(d *decorator) H {
		return reflect.MakeFunc(shape.t, call(d, key, shape)).Interface().(H)
	}
}

// shape is a handler's signature.
type shape struct {
	f            reflect.Value
	t            reflect.Type
	takesContext bool
	takesEvent   bool
	byPointer    bool         // the event is a pointer to the key function's type
	result       reflect.Type // nil: none
	returnsError bool
}

// inspect accepts what lambda.Start accepts.
// https://docs.aws.amazon.com/lambda/latest/dg/golang-handler.html#golang-handler-signatures
func inspect[E any](f reflect.Value) shape {
	t := f.Type()
	if t.Kind() != reflect.Func {
		panic(fmt.Sprintf("lambdalock: the handler is a %s, not a function or a lambda.Handler", t))
	}
	if f.IsNil() {
		panic("lambdalock: the handler is nil")
	}
	s := shape{f: f, t: t}
	if t.IsVariadic() || t.NumIn() > 2 {
		panic(fmt.Sprintf("lambdalock: the handler %s takes more than a context and one event; Lambda gives it no more", t))
	}
	if t.NumIn() > 0 && t.In(0).Kind() == reflect.Interface && t.In(0).NumMethod() > 0 {
		s.takesContext = contextType.Implements(t.In(0)) && t.In(0).Implements(contextType)
	}
	if t.NumIn() == 2 && !s.takesContext {
		panic(fmt.Sprintf("lambdalock: the handler %s takes two arguments, so the first one must be a context.Context", t))
	}
	s.takesEvent = t.NumIn() == 2 || t.NumIn() == 1 && !s.takesContext
	s.returnsError = t.NumOut() > 0 && t.Out(t.NumOut()-1).Implements(errorType)
	if t.NumOut() > 2 || t.NumOut() > 0 && !s.returnsError {
		panic(fmt.Sprintf("lambdalock: the handler %s must return nothing, an error, or a result and an error", t))
	}
	if t.NumOut() == 2 {
		s.result = t.Out(0)
	}
	s.byPointer = checkEvent[E](s)
	return s
}

// checkEvent tells whether the handler takes a pointer to the key function's event.
func checkEvent[E any](s shape) bool {
	event := reflect.TypeFor[E]()
	anything := event.Kind() == reflect.Interface && event.NumMethod() == 0
	if !s.takesEvent {
		if !anything {
			panic(fmt.Sprintf("lambdalock: the handler %s takes no event, so the key cannot come from a %s: use keyfuncs.Static, or let the handler take the event", s.t, event))
		}
		return false
	}
	in := s.t.In(s.t.NumIn() - 1)
	byPointer := in == reflect.PointerTo(event)
	if in != event && !byPointer && !(event.Kind() == reflect.Interface && in.Implements(event)) {
		panic(fmt.Sprintf("lambdalock: the handler takes a %s, but the key function takes a %s: use the key function for the handler's event", in, event))
	}
	return byPointer
}

// checkPolicies refuses what could not be carried out when it is needed.
func checkPolicies(t reflect.Type, s *settings) {
	var result reflect.Type
	if t.NumOut() == 2 {
		result = t.Out(0)
	}
	switch {
	case t.NumOut() == 0 && (s.held.kind == fail || s.completed.kind == fail):
		panic(fmt.Sprintf("lambdalock: the handler %s returns no error, so Lambda could not be told that an event must be delivered again: let it return an error, or choose OnHeld(Skip)", t))
	case s.held.kind == respond && result == nil:
		panic(fmt.Sprintf("lambdalock: OnHeld(Respond) needs a handler with a result; %s has none", t))
	case s.held.kind == respond && s.held.value != nil && !reflect.TypeOf(s.held.value).AssignableTo(result):
		panic(fmt.Sprintf("lambdalock: OnHeld(Respond) was given a %T, but the handler returns a %s", s.held.value, result))
	case s.completed.kind == replay && result == nil:
		panic(fmt.Sprintf("lambdalock: OnCompleted(Replay) needs a handler with a result; %s has none", t))
	case s.completed.kind == replay && result.Kind() == reflect.Interface && result.NumMethod() > 0 && !result.Implements(readerType):
		panic(fmt.Sprintf("lambdalock: OnCompleted(Replay) keeps the result as JSON, which cannot be decoded into the interface %s that %s returns: declare the result as a type of its own, or as any", result, t))
	case result == nil || !result.Implements(readerType):
	case s.held.kind == respond:
		panic(fmt.Sprintf("lambdalock: OnHeld(Respond) cannot give the stream that %s returns to several callers, because it can be read once: choose Fail, and answer lock.ErrHeld in a function around the wrapped handler", t))
	case s.completed.kind == replay:
		panic(fmt.Sprintf("lambdalock: OnCompleted(Replay) cannot store the stream that %s returns", t))
	case !reflect.TypeFor[*stream]().AssignableTo(result) && !hasBody(result):
		panic(fmt.Sprintf("lambdalock: the handler's result %s is streamed, and cannot be watched for its end: declare it as io.Reader or io.ReadCloser", result))
	}
}

func hasBody(result reflect.Type) bool {
	return result == reflect.TypeFor[*events.LambdaFunctionURLStreamingResponse]() ||
		result == reflect.TypeFor[*events.APIGatewayProxyStreamingResponse]()
}

// call is the body of the wrapped function.
func call[E any](d *decorator, key keyfuncs.Func[E], s shape) func([]reflect.Value) []reflect.Value {
	return func(args []reflect.Value) (out []reflect.Value) {
		ctx := context.Background()
		if s.takesContext {
			ctx = args[0].Interface().(context.Context)
		}
		k, err := key(ctx, eventOf[E](s, args))
		in, instead := d.enter(ctx, k, err)
		if instead != nil {
			return s.answer(&in, instead)
		}
		defer in.leave()
		if s.takesContext {
			args[0] = reflect.ValueOf(in.ctx)
		}
		out = s.f.Call(args)
		err = nil
		if s.returnsError {
			err, _ = out[len(out)-1].Interface().(error)
		}
		if s.result != nil && err == nil && in.lock != nil && in.stream(&out[0]) {
			return out
		}
		var stored []byte
		if in.replays(err) {
			stored = in.encode(out[0])
		}
		in.settle(err, stored)
		return out
	}
}

func eventOf[E any](s shape, args []reflect.Value) E {
	var event E
	if !s.takesEvent {
		return event
	}
	v := args[len(args)-1].Interface()
	if !s.byPointer {
		event, _ = v.(E) // a nil interface stays nil
	} else if p := v.(*E); p != nil {
		event = *p
	}
	return event
}

// answer is what the wrapped function returns when the handler does not run.
func (s shape) answer(in *handlerRun, a *answer) []reflect.Value {
	if a.kind == fail && !s.returnsError {
		panic(a.err) // the only way left to fail; Lambda reports the type as usual
	}
	out := make([]reflect.Value, s.t.NumOut())
	for i := range out {
		out[i] = reflect.Zero(s.t.Out(i))
	}
	switch a.kind {
	case fail:
		if response, ok := badRequest(s.result, a.refused); ok {
			out[0] = response
		} else {
			out[len(out)-1] = reflect.ValueOf(&a.err).Elem()
		}
	case respond:
		if a.value != nil {
			out[0] = reflect.ValueOf(a.value)
		}
	case replay:
		if v, err := decode(a.body, s.result); err == nil {
			out[0] = v
		} else {
			in.d.report(in.ctx, lock.Observation{Outcome: lock.OutcomeResultDropped, Key: in.key, Err: err})
		}
	}
	return out
}
