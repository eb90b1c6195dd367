package keyfuncs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/canonical"
	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/lock"
)

// envelope returns the key of the JSON text that a message of carrier has in
// field. If that key has no Event, the id of the message becomes it.
func envelope[E any](ctx context.Context, carrier *eventkind.Kind, field string, text []byte, id string, inner Func[E]) (lock.Key, error) {
	event, err := decode[E](carrier, field, text)
	if err != nil {
		return lock.Key{}, err
	}
	if _, ok := any(event).(events.S3Event); ok {
		ctx = eventkind.WithJSON(ctx, true)
	}
	k, err := faithful(ctx, text, event, inner, func(text []byte) (E, error) { return decode[E](carrier, field, text) })
	k.Event = cmp.Or(k.Event, id)
	if _, ok := any(event).(events.SNSEventRecord); ok {
		err = relocated(err, func(e *lock.NoKeyError) { e.Field = strings.TrimPrefix(e.Field, "Sns.") })
	}
	return k, within(field, err)
}

// decode reads the JSON of one message of carrier. It must hold the kind of
// event that E stands for: an event of another source may decode without an
// error, and then look as if there were nothing in it.
func decode[E any](carrier *eventkind.Kind, field string, text []byte) (event E, err error) {
	if want := eventkind.OfType[E](); want != nil {
		kind := eventkind.Of(text)
		if kind != nil && kind != want && (kind != eventkind.S3Test || want != eventkind.S3) {
			return event, &lock.NoKeyError{Field: field, Reason: kind.Refusal(carrier)}
		}
	}
	if eventkind.IsPointer(text) {
		return event, &lock.NoKeyError{Field: field, Reason: eventkind.PointerRefusal}
	}
	target := any(&event)
	record, fromTopic := target.(*events.SNSEventRecord)
	if fromTopic {
		target = &record.SNS // a topic puts only this part of a record into a message
	}
	err = parse(text, target)
	switch {
	case fromTopic && (err != nil || record.SNS.Message == "" && record.SNS.MessageID == ""):
		return event, &lock.NoKeyError{Field: field, Reason: carrier.NoSNSMessage(), Err: err}
	case err != nil:
		return event, &lock.NoKeyError{Field: field, Reason: "is not JSON of the expected shape", Err: fmt.Errorf("as %T: %w", event, err)}
	}
	if err := unopened(carrier, field, event, text); err != nil {
		return event, err
	}
	if s3, ok := any(event).(events.S3Event); ok && len(s3.Records) == 0 {
		if reason := eventkind.NoS3Records(text, carrier); reason != "" {
			return event, &lock.NoKeyError{Field: field, Reason: reason}
		}
	}
	if string(bytes.TrimSpace(text)) == "null" { // decodes as the zero value, in which nothing was said
		return event, &lock.NoKeyError{Field: field, Reason: "is null"}
	}
	return event, nil
}

// unopened returns what to do if text is another envelope, and event, of a type
// of the user's, takes nothing of what that carries, or if it is another event
// of AWS of which event takes nothing. It returns nil otherwise.
func unopened[E any](carrier *eventkind.Kind, field string, event E, text []byte) error {
	envelope := bytes.Contains(text, []byte(`"TopicArn"`)) || bytes.Contains(text, []byte(`"detail-type"`))
	if eventkind.OfType[E]() != nil || !envelope && !isZero(event) { // most texts
		return nil
	}
	reason := ""
	switch kind := eventkind.Of(text); {
	case kind == eventkind.SNSMessage || kind == eventkind.EventBridge:
		reason = unopenedIn(kind, event, text)
	case kind == nil || !isZero(event):
	case kind == eventkind.S3Test: // it comes before the events that a type is for
		return fmt.Errorf("%s is the s3:TestEvent, which S3 sends when a notification is set up, and %T takes nothing of it: %w", field, event, ErrIgnore)
	default:
		reason = fmt.Sprintf("holds %s, of which %T takes nothing: its key function is %s", kind, event, kind.KeyFunction(carrier))
	}
	if reason == "" {
		return nil
	}
	return &lock.NoKeyError{Field: field, Reason: reason}
}

// unopenedIn is unopened for an envelope, of which a type may take more than
// what it carries, such as the id. Values alone do not decide, because they may
// be zero, and an event may carry nothing, as that of a schedule does.
func unopenedIn[E any](kind *eventkind.Kind, event E, text []byte) string {
	var carried struct {
		Message json.RawMessage `json:"Message,omitempty"`
		Detail  json.RawMessage `json:"detail,omitempty"`
	}
	_ = json.Unmarshal(text, &carried) // it is an object, as all envelopes are
	doc, _ := json.Marshal(carried)    // it came from JSON
	var taken E
	if json.Unmarshal(doc, &taken) != nil || !isZero(taken) {
		return ""
	}
	if nothing := string(doc); !isZero(event) && (nothing == `{"detail":{}}` || nothing == `{"detail":"{}"}`) {
		return ""
	}
	takes := fmt.Sprintf(", and %T takes nothing of what that carries: ", event)
	switch {
	case kind == eventkind.SNSMessage && !declares[E]("Message"):
		return "is an SNS message" + takes + "turn on raw message delivery for the subscription, or put SNSBody around the key function"
	case kind == eventkind.EventBridge && !declares[E]("detail"):
		return "is an EventBridge event" + takes + "let the rule send only the detail, with the input path $.detail, or put EventBridgeDetail around the key function"
	}
	return ""
}

// declares reports whether E is a type with a member of that name. Of a type
// that decodes itself, which may have any, this is unknown.
func declares[E any](member string) bool {
	has := func(name string) bool {
		d := json.NewDecoder(strings.NewReader(`{"` + name + `":null}`))
		d.DisallowUnknownFields()
		return d.Decode(new(E)) == nil
	}
	return has(member) && !has("")
}

// isZero reports whether event, or what it points to, is the zero value.
func isZero[E any](event E) bool {
	v := reflect.ValueOf(&event).Elem()
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	return v.IsZero()
}

var errNotUTF8 = errors.New("it is not UTF-8")

// parse decodes a JSON text. Keys of different things must not be equal, so it
// keeps what json.Unmarshal would lose: it refuses bytes that are not UTF-8,
// which would all become U+FFFD, and where the target has no type, a number
// becomes a json.Number with all its digits.
func parse(text []byte, target any) error {
	if !utf8.Valid(text) {
		return errNotUTF8
	}
	text = bytes.TrimRight(text, " \t\r\n")
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err := d.Decode(target)
	if err == nil && d.InputOffset() == int64(len(text)) {
		return nil
	}
	if syntax := json.Unmarshal(text, new(json.RawMessage)); syntax != nil {
		return syntax // a decoder ends after the first value, and says less
	}
	return err
}

var errHalf = errors.New("encoding/json reads all of them as U+FFFD; package jmespath takes the key from json.RawMessage, which has them unchanged")

// faithful returns the key of an event that decode has read from a JSON text.
// Halves of surrogate pairs all become U+FFFD there, so it refuses a key that
// would be another one with another character in their place. inner is called
// for event last.
func faithful[E any](ctx context.Context, text []byte, event E, inner Func[E], decode func([]byte) (E, error)) (lock.Key, error) {
	_, raw := any(event).(json.RawMessage)
	other, lossy := canonical.WithoutHalves(text)
	if raw || !lossy {
		return inner(ctx, event)
	}
	var k lock.Key
	e, otherErr := decode(other)
	if otherErr == nil {
		k, otherErr = inner(ctx, e)
	}
	exact, err := inner(ctx, event)
	if err == nil && (otherErr != nil || k != exact) {
		err = &lock.NoKeyError{Field: "text", Reason: `has half of a surrogate pair, such as "\ud800", where the key is taken from: different keys would be the same: let the sender write whole characters`, Err: errHalf}
	}
	return exact, err
}
