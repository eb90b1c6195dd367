package middleware

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/lock"
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
	byPointer    bool         // the event is a pointer to the key function's event type
	forKeyAlone  bool         // the handler takes any JSON, which is decoded for the key alone
	result       reflect.Type // nil: none
	returnsError bool
}

// inspect returns the signature of a handler of type t for key functions of
// event. It accepts what lambda.Start accepts.
// https://docs.aws.amazon.com/lambda/latest/dg/golang-handler.html#golang-handler-signatures
func inspect(t, event reflect.Type) signature {
	if t.Implements(reflect.TypeFor[http.Handler]()) || t == reflect.TypeFor[func(http.ResponseWriter, *http.Request)]() {
		refuse("the handler is a %s, which serves HTTP and knows no events: pass the function of the adapter around it, such as httpadapter.NewV2(handler).ProxyWithContext or lambdaurl.Wrap(handler)", t)
	}
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
	if t.NumOut() == 2 {
		s.result = t.Out(0)
	}
	s.checkEvent(event)
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

// checkEvent sets byPointer and forKeyAlone, and panics if the key function's
// event cannot come from what the handler takes.
func (s *signature) checkEvent(event reflect.Type) {
	if !s.takesEvent {
		if event.Kind() != reflect.Interface || event.NumMethod() > 0 {
			refuse("the handler %s takes no event, so the key cannot come from %s: let the handler take the event, or use keyfuncs.Static, with which duplicates run again", s.t, typeName(event))
		}
		return
	}
	in := s.t.In(s.t.NumIn() - 1)
	s.byPointer = in == reflect.PointerTo(event)
	implements := event.Kind() == reflect.Interface && in.Implements(event)
	if in == event || s.byPointer || implements {
		return
	}
	s.forKeyAlone = takesAnyJSON(in) && canBeDecoded(event)
	switch {
	case s.forKeyAlone:
	case eventkind.TakesWindow(in):
		refuse("the handler takes %s, which %s", typeName(in), eventkind.WindowRefusal)
	case event == reflect.TypeFor[json.RawMessage]():
		refuse("the handler takes %s, but the key function takes JSON: use jmespath.Typed, or the key function for the handler's event", typeName(in))
	case perRecord(event) != "":
		refuse("the handler takes %s, but the key function takes one record, %s: %s", typeName(in), typeName(event), perRecord(event))
	default:
		refuse("the handler takes %s, but the key function takes %s: %s", typeName(in), typeName(event), otherKey(in, event))
	}
}

// otherKey says what to do with a key function for another event than that of
// the handler.
func otherKey(in, event reflect.Type) string {
	each := ""
	switch deref(in) {
	case reflect.TypeFor[events.SQSEvent]():
		each = "EachSQSBody"
	case reflect.TypeFor[events.SNSEvent]():
		each = "EachSNSBody"
	case reflect.TypeFor[events.KinesisEvent]():
		each = "EachKinesisBody"
	case reflect.TypeFor[events.EventBridgeEvent]():
		each = "WithEventBridgeDetail"
	}
	switch {
	case each != "":
		return "use the key function for the handler's event; or, to lock what it carries, let the handler take " + typeName(event) + ", and wrap it with " + each
	case eventkind.GatewayOfRequest(in) != eventkind.NoGateway && eventkind.GatewayOfRequest(event) != eventkind.NoGateway:
		return "write the handler's type, such as IdempotencyKey[" + typeName(in) + "]"
	}
	if id := idOfTyped(deref(in)); event == reflect.TypeFor[events.EventBridgeEvent]() && id != "" {
		return "take the id of the event from the handler's type, with keyfuncs.Once(keyfuncs.ByField(func(e " + typeName(deref(in)) + ") string { return e." + id + " }))"
	}
	return "use the key function for the handler's event, or make one with keyfuncs.ByField"
}

// idOfTyped returns the field with the id if a type is that of one event of
// EventBridge, such as events.AutoScalingEvent, and "" otherwise.
func idOfTyped(t reflect.Type) (id string) {
	if t.Kind() != reflect.Struct {
		return ""
	}
	typed := false
	for _, f := range reflect.VisibleFields(t) {
		switch f.Tag.Get("json") {
		case "detail-type":
			typed = true
		case "id":
			id = f.Name
		}
	}
	if !typed {
		return ""
	}
	return id
}

// typeName returns the name that the documents use for a type.
func typeName(t reflect.Type) string {
	return strings.ReplaceAll(t.String(), "events.CloudWatchEvent", "events.EventBridgeEvent")
}

// perRecord says what to do with a key function for records of that type around
// a handler of something else. It returns "" if they are not records.
func perRecord(record reflect.Type) string {
	kind := eventkind.OfRecord(record)
	switch {
	case kind == nil:
		return ""
	case kind.Each() == "":
		return "wrap the key function in keyfuncs." + kind.Single()
	case kind.Single() == "":
		return "let the handler take one record, and wrap it with " + kind.Each()
	}
	text := "let the handler take one, and wrap it with " + kind.Each() + " instead; or, for events of exactly one record, wrap the key function in keyfuncs." + kind.Single()
	switch kind {
	case eventkind.SQS:
		text += ", or, if it takes the body, use EachSQSBody"
	case eventkind.SNS:
		text += ", or, if it takes the message, use EachSNSBody"
	case eventkind.Kinesis:
		text += ", or, if it takes the data, use EachKinesisBody"
	}
	return text
}

// ofOneRecord returns key, and if it takes a record, refuses what a whole event
// becomes if it is decoded as one: nothing is in it but perhaps the stream,
// which an event with a time window names as its records do. A handler of any
// JSON, or of one record, does not show that mistake by its type.
// https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-windows.html
func ofOneRecord[E any](key keySource[E]) keySource[E] {
	instead := perRecord(reflect.TypeFor[E]())
	if instead == "" {
		return key
	}
	return func(ctx context.Context, event E) (keySet, error) {
		v := event
		record := reflect.ValueOf(&v).Elem()
		if stream := record.FieldByName("EventSourceArn"); stream.IsValid() {
			stream.SetZero()
		}
		if record.IsZero() {
			return keySet{}, &lock.NoKeyError{Field: "event", Reason: "holds nothing of one record, " + typeName(record.Type()) + ", which the key function takes. Lambda delivers whole events: " + instead}
		}
		return key(ctx, event)
	}
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

// canBeDecoded reports whether JSON can be decoded as event.
func canBeDecoded(event reflect.Type) bool {
	return event.Kind() != reflect.Interface || event.NumMethod() == 0
}

// streams reports whether the declared result is read after the handler
// returned.
func (s *signature) streams() bool {
	return s.result != nil && s.result.Implements(readerType)
}

// canWrapStream reports whether the declared type of a streamed result lets its
// end be seen.
func (s *signature) canWrapStream() bool {
	return reflect.TypeFor[*stream]().AssignableTo(s.result) ||
		s.result == urlStreamType || s.result == apiStreamType
}
