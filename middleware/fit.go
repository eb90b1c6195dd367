package middleware

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/lock"
)

// signatureOf returns the signature of a handler of type t for key functions of
// event. It panics if the one does not fit the other.
func signatureOf(t, event reflect.Type) signature {
	if t.Implements(reflect.TypeFor[http.Handler]()) || t == reflect.TypeFor[func(http.ResponseWriter, *http.Request)]() {
		refuse("the handler is a %s, which serves HTTP and knows no events: pass the function of the adapter around it, such as httpadapter.NewV2(handler).ProxyWithContext or lambdaurl.Wrap(handler)", t)
	}
	s := inspect(t)
	s.checkEvent(event)
	return s
}

// checkEvent sets forKeyAlone, and panics if the key function's event cannot
// come from what the handler takes.
func (s *signature) checkEvent(event reflect.Type) {
	if !s.takesEvent {
		if event.Kind() != reflect.Interface || event.NumMethod() > 0 {
			refuse("the handler %s takes no event, so the key cannot come from %s: let the handler take the event, or use keyfuncs.Static, with which duplicates run again", s.t, typeName(event))
		}
		return
	}
	in := s.t.In(s.t.NumIn() - 1)
	byPointer := in == reflect.PointerTo(event)
	implements := event.Kind() == reflect.Interface && in.Implements(event)
	if in == event || byPointer || implements {
		return
	}
	// An interface that is not implemented has methods, and JSON has none.
	s.forKeyAlone = takesAnyJSON(in) && event.Kind() != reflect.Interface
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
