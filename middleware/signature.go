package middleware

import (
	"context"
	"encoding/json"
	"io"
	"reflect"
	"strings"

	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
)

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
	readerType  = reflect.TypeFor[io.Reader]()
)

// signature is what a handler function takes and returns.
type signature struct {
	t            reflect.Type
	takesContext bool
	takesEvent   bool
	forKeyAlone  bool         // the handler takes any JSON, which is decoded for the key alone
	result       reflect.Type // nil: none
	returnsError bool
}

// inspect returns the signature of a handler of type t. It accepts what
// lambda.Start accepts, but for an error of another type than error.
// https://docs.aws.amazon.com/lambda/latest/dg/golang-handler.html#golang-handler-signatures
func inspect(t reflect.Type) signature {
	if t.Kind() != reflect.Func {
		refuse("the handler is a %s, not a function or a lambda.Handler: pass what you would pass to lambda.Start", t)
	}
	s := signature{t: t}
	if t.IsVariadic() || t.NumIn() > 2 {
		refuse("the handler %s takes more than a context and one event, but Lambda passes no more: remove the other arguments", t)
	}
	if t.NumIn() > 0 && t.In(0).Kind() == reflect.Interface && t.In(0).NumMethod() > 0 {
		s.takesContext = contextType.Implements(t.In(0)) && t.In(0).Implements(contextType)
	}
	if t.NumIn() == 2 && !s.takesContext {
		refuse("the handler %s takes two arguments, so the first one must be a context.Context", t)
	}
	s.takesEvent = t.NumIn() == 2 || t.NumIn() == 1 && !s.takesContext
	s.returnsError = t.NumOut() > 0 && t.Out(t.NumOut()-1).Implements(errorType)
	if t.NumOut() > 2 || t.NumOut() > 0 && !s.returnsError {
		refuse("the handler %s must return nothing, an error, or a result and an error", t)
	}
	if s.returnsError && !errorType.AssignableTo(t.Out(t.NumOut()-1)) {
		refuse("the handler %s returns its error as %s, which cannot hold those of the wrapper: let it return error", t, t.Out(t.NumOut()-1))
	}
	if t.NumOut() == 2 {
		s.result = t.Out(0)
	}
	return s
}

// event returns the type of the handler's event, or that of the key function's
// if the handler takes none or any JSON.
func (s *signature) event(key reflect.Type) reflect.Type {
	if s.takesEvent && !s.forKeyAlone {
		return s.t.In(s.t.NumIn() - 1)
	}
	return key
}

// takesAnyJSON reports whether a handler that takes an in gets any payload, or
// any that is an object.
func takesAnyJSON(in reflect.Type) bool {
	switch in {
	case reflect.TypeFor[json.RawMessage](), reflect.TypeFor[[]byte](), reflect.TypeFor[map[string]any]():
		return true
	}
	return in.Kind() == reflect.Interface && in.NumMethod() == 0
}

// streams reports whether the declared result is read after the handler
// returned.
func (s *signature) streams() bool {
	return s.result != nil && s.result.Implements(readerType)
}

// ofAWS reports whether a type is that of an event that AWS sends.
func ofAWS(event reflect.Type) bool {
	path := deref(event).PkgPath()
	return strings.HasPrefix(path, "github.com/aws/") || path == reflect.TypeFor[awsevents.DocumentDBEvent]().PkgPath()
}

func deref(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}
