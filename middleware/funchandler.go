package middleware

import (
	"context"
	"reflect"

	"github.com/lambdalock/lambdalock/keyfuncs"
)

// wrapFunc returns the body of the function that wraps handler.
func wrapFunc[E any](w *wrapper, key keyfuncs.Func[E], handler reflect.Value, sig signature) func([]reflect.Value) []reflect.Value {
	return func(args []reflect.Value) []reflect.Value {
		ctx := context.Background()
		if sig.takesContext {
			ctx = args[0].Interface().(context.Context)
		}
		k, err := key(ctx, eventOf[E](sig, args))
		run, instead := w.enter(ctx, k, err)
		if instead != nil {
			return instead.values(&run, sig)
		}
		defer run.release()
		if sig.takesContext {
			args[0] = reflect.ValueOf(run.ctx)
		}
		out := handler.Call(args)
		if sig.returnsError {
			if err, _ := out[len(out)-1].Interface().(error); err != nil {
				return out
			}
		}
		if sig.result != nil && run.stream(&out[0]) {
			return out
		}
		var stored []byte
		if run.storesResult() {
			stored = run.encode(out[0])
		}
		run.complete(stored)
		return out
	}
}

// eventOf returns the event among the arguments of the handler.
func eventOf[E any](sig signature, args []reflect.Value) E {
	var event E
	if !sig.takesEvent {
		return event
	}
	v := args[len(args)-1].Interface()
	if !sig.byPointer {
		event, _ = v.(E) // a nil interface stays nil
	} else if p := v.(*E); p != nil {
		event = *p
	}
	return event
}
