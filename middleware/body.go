package middleware

import (
	"context"
	"errors"
	"reflect"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// EachSQSBody is [EachSQSMessage] for a handler of what the message carries:
//
//	lambda.Start(middleware.EachSQSBody(byCustomer, handle))
//
//	func handle(ctx context.Context, o Order) error { … }
//
// The JSON body is decoded once, as B, for both key and handler. B is a type of
// your own, an AWS event such as events.S3Event, or json.RawMessage. If key
// gives no Event, the message id becomes it: for an order that may be sent in
// several messages, use keyfuncs.Once(byID). [RecordKey] takes the key from the
// message instead, and [RecordFromContext] returns the message.
//
// A message whose body is malformed fails alone, with a *lock.NoKeyError that
// names the field, such as Records[3].body. EachSQSBody panics if B is a
// pointer or an interface with methods, and like EachSQSMessage.
func EachSQSBody[B any, K keyfuncs.For[B]](key K, handler RecordHandler[B], opts ...Option) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	return eachSQS(newBodyBatch(keyfuncs.SQSBody[B], funcOf[B](key), handler, opts))
}

// EachSNSBody is [EachSQSBody] for SNS, built on [EachSNSRecord] and
// [keyfuncs.SNSBody]: B is decoded from the message of each record. The record
// in the context is an events.SNSEventRecord.
func EachSNSBody[B any, K keyfuncs.For[B]](key K, handler RecordHandler[B], opts ...Option) func(context.Context, events.SNSEvent) error {
	return eachSNS(newBodyBatch(keyfuncs.SNSBody[B], funcOf[B](key), handler, opts))
}

// EachKinesisBody is [EachSQSBody] for a Kinesis stream, built on
// [EachKinesisRecord] and [keyfuncs.KinesisBody]: B is decoded from the data of
// each record. The record in the context is an events.KinesisEventRecord. The
// key has no Order unless keyfuncs.OrderFrom and [RecordKey] add that of the
// shard, which puts shard and partition key into the Name.
//
// A record whose body is malformed has no key, with [RecordKey] either, so what
// follows it in the shard is returned, also with [OrderPerName]. If only its
// own name should wait, use EachKinesisRecord and decode in the handler.
func EachKinesisBody[B any, K keyfuncs.For[B]](key K, handler RecordHandler[B], opts ...Option) func(context.Context, KinesisRecords) (events.KinesisEventResponse, error) {
	return eachKinesis(newBodyBatch(keyfuncs.KinesisBody[B], funcOf[B](key), handler, opts))
}

// WithEventBridgeDetail is [WithLock] for a handler of the detail of an
// EventBridge event, which is decoded once, as D, for both key and handler. If
// key gives no Event, the id of the event becomes it. D is what B is for
// [EachSQSBody], and the event is in the context:
// RecordFromContext[events.EventBridgeEvent](ctx). If the detail is malformed,
// the invocation fails with a *lock.NoKeyError.
func WithEventBridgeDetail[D any, K keyfuncs.For[D]](key K, handler func(context.Context, D) error, opts ...Option) func(context.Context, events.EventBridgeEvent) error {
	opens := bodyOpener(keyfuncs.EventBridgeDetail[D], funcOf[D](key), handler)
	s := newSettings(reflect.TypeFor[events.EventBridgeEvent](), opts)
	s.refuseEach()
	s.checkPolicies(signatureOf(reflect.TypeOf(handler), reflect.TypeFor[D]()), false)
	open, w := opens(&s.config), newWrapper(&s.config)
	return func(ctx context.Context, e events.EventBridgeEvent) error {
		ctx, done := w.measure(withRecord(ctx, &e))
		defer done()
		o, err := open(ctx, &e)
		w.ofTenant(ctx, &o.key)
		if err == nil {
			if e := w.refuseLoss(ctx, o.key, nil); e != nil {
				return e
			}
		}
		return w.locked(ctx, o.key, err, o.question, o.handler)
	}
}

func newBodyBatch[R, B any](lift func(keyfuncs.Func[B]) keyfuncs.Func[R], key keyfuncs.Func[B], handler RecordHandler[B], opts []Option) *batch[R] {
	return batchOf(bodyOpener(lift, key, handler), signatureOf(reflect.TypeOf(handler), reflect.TypeFor[B]()), opts)
}

// bodyOpener is the opener of handlers that take what a record carries. lift,
// a function of package keyfuncs, decodes that for the key, and the handler
// gets the same value: so key and error are those of lift.
func bodyOpener[R, B any](lift func(keyfuncs.Func[B]) keyfuncs.Func[R], key keyfuncs.Func[B], handler RecordHandler[B]) openerOf[R] {
	refuseNil(key == nil, handler == nil)
	checkBody(reflect.TypeFor[R](), reflect.TypeFor[B]())
	return func(c *config) opener[R] {
		about := questionOf[B](c)
		return func(ctx context.Context, r *R) (opened, error) {
			var body B
			k, err := lift(func(ctx context.Context, b B) (lock.Key, error) {
				body = b
				return key(ctx, b)
			})(ctx, *r)
			var ofRecord recordKeyError
			if errors.As(err, &ofRecord) {
				err = ofRecord.err
			}
			return opened{k, func(ctx context.Context) error { return handler(ctx, body) }, about(body)}, err
		}
	}
}

// checkBody panics if the JSON in a record cannot be decoded as body.
func checkBody(record, body reflect.Type) {
	switch {
	case body == record:
		refuse("the handler takes %s, which is the record itself and not what it carries: use the wrapper for handlers of records, such as EachSQSMessage, or WithLock for an EventBridge event", typeName(body))
	case body.Kind() == reflect.Pointer:
		refuse("the handler takes %s, but bodies are decoded by value: let handler and key function take %s", body, body.Elem())
	case body.Kind() == reflect.Interface && body.NumMethod() > 0:
		refuse("the handler takes %s, an interface into which JSON cannot be decoded: let handler and key function take a concrete type, any or json.RawMessage", body)
	}
}

// RecordKey takes the key from the record that carries B, for handlers that
// take B:
//
//	middleware.EachSQSBody(middleware.RecordKey[Change](keyfuncs.SQSFIFOMessage), handle)
//
// It combines with keys from the body, such as keyfuncs.OrderFrom(bySensor,
// RecordKey[Reading](keyfuncs.KinesisRecord)). Outside [EachSQSBody] and its
// siblings, or in the one for another record, it returns a *lock.NoKeyError.
func RecordKey[B, R any](key keyfuncs.Func[R]) keyfuncs.Func[B] {
	if key == nil {
		refuse(nilKey)
	}
	return func(ctx context.Context, _ B) (lock.Key, error) {
		r, ok := RecordFromContext[R](ctx)
		if !ok {
			return lock.Key{}, recordKeyError{&lock.NoKeyError{
				Field: "record", Reason: "is not of type " + typeName(reflect.TypeFor[R]()) + ", which the key function given to middleware.RecordKey takes: use the key function for the records of this wrapper",
			}}
		}
		k, err := key(ctx, r)
		if err != nil {
			err = recordKeyError{err}
		}
		return k, err
	}
}

// recordKeyError is an error of a key function of records. It hides a
// *lock.NoKeyError from the functions that would put the place of the body in
// front of its field.
type recordKeyError struct{ err error }

func (e recordKeyError) Error() string { return e.err.Error() }
