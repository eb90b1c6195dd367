package middleware

import (
	"reflect"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/keyfuncs"
)

// WithLock wraps a Lambda handler so that it runs only while it owns the lock
// of its event's key, and not at all if the event was already completed. It
// returns the type it was given, so the wrapped handler can be passed to
// lambda.Start or lambda.StartWithOptions, wrapped again, or called in a test.
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
// or a [lambda.Handler], whose payload is decoded only to compute the key. TIn
// must be the key function's event type, a pointer to it, or implement it. A
// handler that takes no event needs [keyfuncs.Static]. A handler that returns
// no error cannot make Lambda deliver an event again: WithLock accepts it only
// with OnHeld(Skip), and it panics where it would have failed.
//
// If TIn is json.RawMessage, []byte, any or map[string]any, as in the functions
// of tracing libraries, the event is decoded for the key alone. For the last
// two it is encoded first: the runtime has decoded its numbers as float64, so
// two ids beyond 2⁵³ may become one, unless lambda.StartWithOptions is given
// lambda.WithUseNumber(true). A []byte gets from the runtime only the bytes of
// a base64 string; other JSON is refused. docs/COMPOSITION.md says whether a
// tracing library goes inside or outside.
//
// Without the option [Store], locks are in the DynamoDB table named by [Table]
// or LOCK_TABLE_NAME. That store is opened once per table and process, and
// nested wrappers share it; see [DefaultStore]. Inside Lambda, WithLock opens
// its connection. If the store cannot be opened, every invocation fails with a
// *lock.ConfigError or *lock.StoreError. None of this applies with the option
// [Store].
//
// A streamed result, declared as io.Reader or as the streaming response of a
// Function URL or of API Gateway, keeps the lock until the runtime has read it
// to its end. If it is closed before that, the event counts as failed.
//
// # HTTP
//
// Other defaults hold if the handler answers over HTTP: if its event is a
// request, or its result a response, of API Gateway, a load balancer or a
// Function URL (also by pointer, streamed, embedded, or as a type defined so).
// They hold for a result of type any, json.RawMessage or a map, and for a
// [lambda.Handler], if the payload is such a request; and for a result of your
// own with a statusCode, unless the event is that of another source.
//
// Where event and payload show no gateway, the result does: JSON with a
// statusCode from 100 to 599 is a response, unless the event's type is that of
// another source, such as events.SQSEvent. Then a failure runs again and a
// success is replayed, but the errors below are returned, and a duplicate whose
// response is not stored gets the zero result: let the event type have the
// requestContext to get problem documents. Other results with such a field are
// judged alike, so after one with 503 the event runs again when it is delivered
// again: rename the field, or choose [CompletedIf] and [OnCompleted].
//
// A response completes the event if its status is from 200 to 499, except 401,
// 403, 406, 407, 408, 409, 411, 412, 415, 416, 417, 421, 423, 425, 426, 428,
// 429, 431, and any other 4xx with the header Retry-After, as a wrapper inside
// the handler answers if its lock is held; after any other the retry runs.
// [CompletedIf] changes that. A repeated request gets the first response again
// with the header Idempotent-Replayed: true. These are answered with a problem
// document (RFC 9457):
//
//   - a request that is in progress, with status 409 and Retry-After
//   - a completed request whose response is not stored, or a stale one, with
//     status 409
//   - a *lock.PayloadMismatchError, such as another request or another caller
//     with the same key, with status 422
//   - a *lock.NoKeyError that the client can correct, such as a missing
//     Idempotency-Key, with status 400, except for OPTIONS, which needs no key
//
// A key that has an Event and no Payload gets the caller as its Payload, as
// keyfuncs.PayloadFrom(key, keyfuncs.Caller) would give it, so that only the
// caller who got an answer gets it again. Of an event type of your own, its
// JSON form counts. [keyfuncs.Anonymous] in place of Caller switches that off.
//
// [OnError] changes the answers, and [OnHeld] and [OnCompleted] come before
// these defaults. Every other error is returned and becomes a 5xx, so that
// alarms see an event of another source or the wrong key function. After
// [keyfuncs.ErrIgnore] the answer has status 204.
//
// A result type without a status, which payload format 2.0 turns into the body
// of a response, has room for neither that header nor a problem document: there
// the errors above are returned too.
//
// A streamed response is recorded for the replay while it is sent; one of more
// than about 260 KB is not stored, which lock.OutcomeResultDropped reports. If
// the result type is any, problem documents are sent as buffered responses: if
// a handler streams, declare the type of its response.
//
// WithLock panics, with one line that says what to change, if handler, key
// function and options do not fit together.
//
// [lambda.Handler]: https://pkg.go.dev/github.com/aws/aws-lambda-go/lambda#Handler
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
	switch h := handler.(type) {
	case nil:
		refuse(nilHandler)
	case lambda.Handler:
		checkRawHandler(h, declared, s)
		refuseLossy(event, s)
		s.use(httpOf(event, rawType))
		return &rawHandler{newWrapper(s), ofPayload(key), h}
	}
	f := reflect.ValueOf(handler)
	sig := inspect(f.Type(), event)
	if f.IsNil() {
		refuse(nilHandler)
	}
	checkPolicies(sig, s)
	refuseLossy(sig.event(event), s)
	s.use(httpOf(sig.event(event), sig.result))
	call := wrapFunc(newWrapper(s), ofArguments(key, sig), f, sig)
	return reflect.MakeFunc(f.Type(), call).Interface()
}
