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
	"github.com/lambdalock/lambdalock/lock"
)

var rawType = reflect.TypeFor[json.RawMessage]() // what a raw handler returns

// rawHandler wraps a lambda.Handler, which takes and returns bytes.
type rawHandler struct {
	*wrapper
	key     keySource[[]byte]
	handler lambda.Handler
}

// checkRawHandler panics if h, which was passed as declared, cannot be wrapped.
func (c *config) checkRawHandler(h lambda.Handler, declared reflect.Type) {
	if reflect.TypeOf(h).String() == "*lambda.handlerOptions" {
		// Its Invoke returns bytes of a pooled buffer that the next invocation may
		// overwrite, drops options and buffers streams (aws/aws-lambda-go issue 639).
		refuse("the handler comes from lambda.NewHandler, or from nrlambda.Wrap without an application: pass the function itself to WithLock, the options to lambda.StartWithOptions, and the wrapped function to nrlambda.Wrap")
	}
	if !reflect.TypeFor[*rawHandler]().AssignableTo(declared) {
		refuse("the wrapped handler cannot have the type %s: convert the handler to lambda.Handler before you wrap it", declared)
	}
	if takes := c.completedIfTakes; takes != nil && !isOrImplements(reflect.TypeFor[[]byte](), takes) {
		refuse("CompletedIf was given a func(%s) bool, but a lambda.Handler returns bytes: pass a func([]byte) bool", takes)
	}
	if takes := c.rememberForTakes; takes != nil && !isOrImplements(reflect.TypeFor[[]byte](), takes) {
		refuse("RememberFor was given a func(%s) time.Duration, but a lambda.Handler returns bytes: pass a func([]byte) time.Duration", takes)
	}
	if _, err := json.Marshal(c.held.response); err != nil {
		refuse("OnHeld(Respond) was given a %T, which has no JSON form to answer with: %v", c.held.response, err)
	}
}

// Invoke implements lambda.Handler.
func (h *rawHandler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	ctx, done := h.measure(ctx)
	defer done()
	run, instead := begin(ctx, h.wrapper, h.key, payload, payload)
	if instead != nil {
		return run.exchange.reply(&run, instead, rawType).bytes()
	}
	defer run.release()
	out, err := h.handler.Invoke(run.ctx, payload)
	switch {
	case err != nil:
		run.failed(err)
	case run.lock != nil:
		run.finish(out, out, nil)
	}
	return out, err
}

// ofPayload returns key for the payload that it decodes.
func ofPayload[E any](key keySource[E]) keySource[[]byte] {
	return func(ctx context.Context, payload []byte) (keySet, error) {
		event, err := decodeEvent[E](payload)
		if err != nil {
			return keySet{}, err
		}
		return key(eventkind.WithJSON(ctx, false), event)
	}
}

// decodeEvent decodes a payload for the key function. One that takes raw bytes,
// or anything, gets a copy, because the runtime uses the buffer again for the
// next invocation.
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
			reason := fmt.Sprintf("cannot be decoded as %T", event)
			if kind := reflect.TypeFor[E]().Kind(); eventkind.IsArray(payload) && kind != reflect.Slice && kind != reflect.Array {
				reason = eventkind.ArrayRefusal
			}
			return event, &lock.NoKeyError{Field: "event", Reason: reason, Err: err}
		}
	}
	return event, checkS3(event, payload)
}

// checkS3 returns a *lock.NoKeyError if event is an [events.S3Event] without
// records that came from another source than S3. Only the payload tells that
// from the s3:TestEvent, which has no records either.
func checkS3(event any, payload []byte) error {
	s3, ok := event.(events.S3Event)
	if !ok || len(s3.Records) > 0 {
		return nil
	}
	if reason := eventkind.NoS3Records(payload, nil); reason != "" {
		return &lock.NoKeyError{Field: "the event", Reason: reason}
	}
	return nil
}
