package middleware

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/lambdalock/lambdalock/lock"
)

// wrapFunc returns the body of the function that wraps handler.
func wrapFunc(w *wrapper, key keySource[[]reflect.Value], handler reflect.Value, sig signature) func([]reflect.Value) []reflect.Value {
	return func(args []reflect.Value) []reflect.Value {
		ctx := context.Background()
		if sig.takesContext {
			ctx = args[0].Interface().(context.Context)
		}
		ctx, done := w.measure(ctx)
		defer done()
		run, instead := begin(ctx, w, key, args, payload(sig, args))
		if instead != nil {
			return run.exchange.reply(&run, instead, sig.result).values(sig)
		}
		defer run.release()
		if sig.takesContext {
			args[0] = reflect.ValueOf(run.ctx)
		}
		out := handler.Call(args)
		if sig.returnsError {
			if err, _ := out[len(out)-1].Interface().(error); err != nil {
				run.failed(err)
				return out
			}
		}
		if sig.result == nil {
			run.complete(nil, 0)
		} else {
			run.settle(&out[0])
		}
		return out
	}
}

// payload returns what the runtime passed to the handler besides the context,
// or nil.
func payload(sig signature, args []reflect.Value) any {
	if !sig.takesEvent {
		return nil
	}
	return args[len(args)-1].Interface()
}

// ofArguments returns key for the arguments of a handler.
func ofArguments[E any](key keySource[E], sig signature) keySource[[]reflect.Value] {
	fromJSON := ofPayload(key)
	return func(ctx context.Context, args []reflect.Value) (keySet, error) {
		event, decoded := eventOf[E](sig, args)
		if decoded {
			return key(ctx, event)
		}
		payload, err := jsonOf(args[len(args)-1].Interface())
		if err != nil {
			return keySet{}, err
		}
		return fromJSON(ctx, payload)
	}
}

// eventOf returns the key function's event if it is among the arguments of the
// handler. A handler that takes any JSON may get it from a test or another
// wrapper; from the runtime it gets other types.
func eventOf[E any](sig signature, args []reflect.Value) (event E, decoded bool) {
	if !sig.takesEvent {
		return event, true
	}
	switch v := args[len(args)-1].Interface().(type) {
	case *E:
		if v != nil {
			event = *v
		}
		return event, true
	case E:
		return v, true
	}
	return event, !sig.forKeyAlone // a nil interface stays nil
}

// jsonOf returns the JSON of what the runtime gives to a handler that takes any
// JSON: a json.RawMessage, the bytes of a base64 string, or what
// [json.Unmarshal] makes of an any.
func jsonOf(v any) ([]byte, error) {
	switch v := v.(type) {
	case json.RawMessage:
		return v, nil
	case []byte:
		return v, nil
	}
	payload, err := json.Marshal(v)
	if err != nil {
		return nil, &lock.NoKeyError{Field: "event", Reason: fmt.Sprintf("is a %T, which has no JSON form", v), Err: err}
	}
	return payload, nil
}
