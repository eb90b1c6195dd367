package eventkind

import (
	"encoding/json"
	"reflect"

	"github.com/aws/aws-lambda-go/events"
)

// WindowRefusal says why no wrapper takes an event of a tumbling window.
// https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-windows.html
const WindowRefusal = "is part of a tumbling window: the event source mapping has TumblingWindowInSeconds, and Lambda counts an answer without the window's state as a failed invocation: remove that setting, or see docs/SOURCES.md#tumbling-windows"

// HasWindow reports whether an event belongs to a tumbling window.
func HasWindow(doc []byte) bool {
	var e struct {
		Window json.RawMessage `json:"window"`
	}
	return json.Unmarshal(doc, &e) == nil && IsWindow(e.Window)
}

// IsWindow reports whether the member window of an event says that there is
// one.
func IsWindow(member json.RawMessage) bool { return len(member) > 0 && string(member) != "null" }

// TakesWindow reports whether a Go type is that of an event of a tumbling
// window, points to it or embeds it.
func TakesWindow(t reflect.Type) bool {
	return embeds(t, reflect.TypeFor[events.TimeWindowProperties](), map[reflect.Type]bool{})
}

// embeds reports whether t is a type, points to it or embeds it. A type may
// embed a pointer to itself.
func embeds(t, what reflect.Type, seen map[reflect.Type]bool) bool {
	t = deref(t)
	if t == what {
		return true
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return false
	}
	seen[t] = true
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous && embeds(f.Type, what, seen) {
			return true
		}
	}
	return false
}
