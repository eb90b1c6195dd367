package middleware

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// rawHandler wraps a lambda.Handler, which gets and returns bytes.
type rawHandler[E any] struct {
	*decorator
	key     keyfuncs.Func[E]
	handler lambda.Handler
}

func rawWrapper[E, H any](key keyfuncs.Func[E], h lambda.Handler, given H, s *settings) func(*decorator) H {
	declared := reflect.TypeFor[H]()
	if t := reflect.TypeOf(h).String(); t == "*lambda.handlerOptions" {
		// Its Invoke returns bytes of a pooled buffer that the next invocation may
		// overwrite, drops options and buffers streams (aws/aws-lambda-go issue 639).
		panic("lambdalock: the handler comes from lambda.NewHandler: give WithLock the function itself, and options to lambda.StartWithOptions")
	}
	if !reflect.TypeFor[*rawHandler[E]]().AssignableTo(declared) {
		panic(fmt.Sprintf("lambdalock: a handler of type %s cannot be given back as that type: convert it to lambda.Handler", declared))
	}
	if _, err := json.Marshal(s.held.value); err != nil {
		panic(fmt.Sprintf("lambdalock: OnHeld(Respond) was given a %T, which has no JSON form to answer with: %v", s.held.value, err))
	}
	return func(d *decorator) H { return any(&rawHandler[E]{d, key, h}).(H) }
}

// Invoke implements lambda.Handler.
func (r *rawHandler[E]) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	event, err := decodeEvent[E](payload)
	var k lock.Key
	if err == nil {
		k, err = r.key(ctx, event)
	}
	in, instead := r.enter(ctx, k, err)
	if instead != nil {
		return instead.bytes()
	}
	defer in.leave()
	out, err := r.handler.Invoke(in.ctx, payload)
	var stored []byte
	if in.replays(err) {
		stored = bytes.Clone(out) // the handler may answer with the payload, or from a buffer that it uses again
	}
	in.settle(err, stored)
	return out, err
}

func (a *answer) bytes() ([]byte, error) {
	switch a.kind {
	case fail:
		return nil, a.err
	case respond:
		return json.Marshal(a.value)
	case replay:
		return bytes.Clone(a.body), nil // a store in memory keeps these bytes
	}
	return []byte("null"), nil
}

// decodeEvent decodes for the key alone. A key function of raw bytes, or of anything,
// gets a copy of the payload: the runtime's buffer serves the next invocation too.
// https://github.com/aws/aws-lambda-go/blob/main/lambda/runtime_api_client.go
func decodeEvent[E any](payload []byte) (E, error) {
	var event E
	switch e := any(&event).(type) {
	case *[]byte:
		*e = bytes.Clone(payload)
	case *json.RawMessage:
		*e = bytes.Clone(payload)
	case *any:
		*e = json.RawMessage(bytes.Clone(payload))
	default:
		if err := json.Unmarshal(payload, &event); err != nil {
			return event, &lock.KeyError{Field: "event", Reason: fmt.Sprintf("cannot be decoded as %T", event), Err: err}
		}
	}
	return event, checkS3(event, payload)
}

// checkS3 tells the s3:TestEvent from an event of another source, which has no
// records either.
func checkS3(event any, payload []byte) error {
	s3, ok := event.(events.S3Event)
	if !ok || len(s3.Records) > 0 {
		return nil
	}
	if reason := eventkind.NoS3Records(payload, ""); reason != "" {
		return &lock.KeyError{Field: "the event", Reason: reason}
	}
	return nil
}
