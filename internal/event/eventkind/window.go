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
	window := reflect.TypeFor[events.TimeWindowProperties]()
	return embeds(t, func(t reflect.Type) bool { return t == window }, map[reflect.Type]bool{})
}
