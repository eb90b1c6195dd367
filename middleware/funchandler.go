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
	return func(ctx context.Context, args []reflect.Value) (keySet, error) {
		event, err := eventOf[E](sig, args)
		if err != nil {
			return keySet{}, err
		}
		return key(ctx, event)
	}
}

// eventOf returns the event among the arguments of the handler.
func eventOf[E any](sig signature, args []reflect.Value) (E, error) {
	var event E
	if !sig.takesEvent {
		return event, nil
	}
	v := args[len(args)-1].Interface()
	switch {
	case sig.forKeyAlone:
		return eventFrom[E](v)
	case !sig.byPointer:
		event, _ = v.(E) // a nil interface stays nil
	default:
		if p := v.(*E); p != nil {
			event = *p
		}
	}
	return event, nil
}

// eventFrom returns the key function's event for a handler that takes any JSON.
// The runtime gives such a handler a json.RawMessage, the bytes of a base64
// string, or what [json.Unmarshal] makes of an any; a test or another wrapper
// may give it the event itself.
func eventFrom[E any](v any) (event E, err error) {
	switch v := v.(type) {
	case E:
		return v, nil
	case *E:
		if v != nil {
			event = *v
		}
		return event, nil
	case json.RawMessage:
		return decodeEvent[E](v)
	case []byte:
		return decodeEvent[E](v)
	}
	payload, err := json.Marshal(v)
	if err != nil {
		return event, &lock.NoKeyError{Field: "event", Reason: fmt.Sprintf("is a %T, which has no JSON form", v), Err: err}
	}
	return decodeEvent[E](payload)
}
