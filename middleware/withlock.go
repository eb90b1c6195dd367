package middleware

import (
	"reflect"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/keyfuncs"
)

// WithLock wraps a Lambda handler so that it runs only while it holds the lock
// of its event's key, and not at all if the event was already completed. It
// returns a handler of the same type.
//
// handler is any function that lambda.Start takes and whose error, if it
// returns one, has the type error, or a [lambda.Handler], whose payload is
// decoded only to compute the key; for that of lambda.NewHandler,
// pass the function that it was made from. The event must be the key
// function's event type, a pointer to it or a type that implements it;
// json.RawMessage, []byte, any and map[string]any are decoded for the key
// alone. A handler that takes no event needs [keyfuncs.Static]. One that
// returns no error cannot have its event delivered again, so it is refused
// without OnHeld([Skip]), and panics where it would fail for another reason.
//
// Without the option [Store], locks are in the DynamoDB table of
// [DefaultStore]. If that cannot be opened, every invocation fails with a
// *lock.ConfigError or *lock.StoreError.
//
// If the event or the result is an HTTP message of a gateway, a repeated
// request gets the first response again, and a request that does not run gets
// status 409, 422 or 400: see docs/GUIDE.md#http. A streamed result keeps the
// lock until it is read to its end; if it is closed before that, the event
// counts as failed.
//
// WithLock panics, with one line that says what to change, if handler, key
// function and options do not fit together.
func WithLock[E, H any](key keyfuncs.Func[E], handler H, opts ...Option) H {
	if key == nil {
		refuse(nilKey)
	}
	return wrap(oneKey(key), handler, opts)
}

// wrap wraps handler so that it runs under the locks of key.
func wrap[E, H any](key keySource[E], handler H, opts []Option) H {
	return wrapAny(key, handler, reflect.TypeFor[H](), opts).(H)
}

// wrapAny is wrap for a handler that was declared as that type. It is compiled
// once for each type of event, however many handlers there are.
func wrapAny[E any](key keySource[E], handler any, declared reflect.Type, opts []Option) any {
	event := reflect.TypeFor[E]()
	s := newSettings(event, opts)
	s.refuseEach()
	key = ofOneRecord(key)
	key = asking(&s.config, key)
	switch h := handler.(type) {
	case nil:
		refuse(nilHandler)
	case lambda.Handler:
		s.checkRawHandler(h, declared)
		refuseStreamed(s.held.response)
		s.held.checkKept(eventkind.IsKept(event))
		s.checkRawInterrupted()
		s.use(httpOf(event, rawType))
		return &rawHandler{newWrapper(&s.config), ofPayload(key), h}
	}
	f := reflect.ValueOf(handler)
	sig := signatureOf(f.Type(), event)
	if f.IsNil() {
		refuse(nilHandler)
	}
	s.checkStreams(sig)
	s.checkPolicies(sig, eventkind.IsKept(sig.event(event)))
	s.use(httpOf(sig.event(event), sig.result))
	s.rememberFrom(deref(sig.event(event))) // which a key function of an interface does not show
	call := wrapFunc(newWrapper(&s.config), ofArguments(key, sig), f, sig)
	return reflect.MakeFunc(f.Type(), call).Interface()
}
