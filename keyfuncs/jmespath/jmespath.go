// Package jmespath takes lock keys from JSON payloads of any shape: from the
// part that a JMESPath expression finds, or from the whole payload.
//
// It is a separate package so that only functions that use it link a JMESPath
// library. If your handler has a Go type for its event, keyfuncs.ByField does
// the same without a library.
package jmespath

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/lambdalock/lambdalock/internal/event/canonical"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// Path locks what a JMESPath expression finds in the payload, for example
// "order.id", or "[tenant, order.id]" for several parts. Name is the canonical
// JSON of the result: the number 17 and the string "17" are two names. Numbers
// keep all their digits. JMESPath comparisons and functions ignore a number
// that float64 cannot represent exactly.
//
// On its own Path makes a plain mutex; keyfuncs.Once, keyfuncs.EventFrom or an
// envelope adds an Event. The error is a *lock.NoKeyError if the path finds
// nothing, an empty value, or a list or object with a null as one of its
// members; Missing is set if it finds nothing. Deeper inside, a null counts as
// data: so write "[tenant, id, kind]", not "[[tenant, id], kind]".
//
// Path panics if the path is not a JMESPath expression, or lists the members of
// an object ("*", keys, values), which have no order.
//
// Source: https://jmespath.org/specification.html.
func Path(path string) keyfuncs.Func[json.RawMessage] {
	if err := check(path); err != nil {
		panic(fmt.Sprintf("lambdalock: jmespath.Path(%q): %v", path, err))
	}
	return func(_ context.Context, payload json.RawMessage) (lock.Key, error) {
		doc, err := canonical.Parse(payload)
		if err != nil {
			return lock.Key{}, notJSON(err)
		}
		found, err := search(path, doc)
		if err != nil {
			return lock.Key{}, &lock.NoKeyError{Field: path, Reason: "cannot be evaluated", Err: err}
		}
		if reason := incomplete(found); reason != "" {
			return lock.Key{}, &lock.NoKeyError{Field: path, Reason: reason, Err: errUnfilled, Missing: found == nil}
		}
		return lock.Key{Name: string(canonical.Text(found))}, nil
	}
}

// errUnfilled is what to do about a value that is not there. It is not part of
// a Reason, which a client sees over HTTP.
var errUnfilled = errors.New("let the sender fill in the field that the path names, or correct the path; if the event comes from another source, `lambdalock explain` names the key function")

// incomplete returns why a value cannot be a name, or "" if it can. A null
// inside is as bad as no value at all: events that differ only in the missing
// part would share a lock. One level is where a path puts its parts together,
// unless it nests them, which its documentation advises against; a deeper null
// may be data.
func incomplete(v any) string {
	const part = "is missing in part: it contains a null, and events that differ in that part would share a lock"
	empty := v == nil || v == ""
	switch v := v.(type) {
	case canonical.Object:
		for _, m := range v {
			if m.Value == nil {
				return part
			}
		}
		empty = len(v) == 0
	case []any:
		for _, e := range v {
			if e == nil {
				return part
			}
		}
		empty = len(v) == 0
	}
	if empty {
		return "is missing or empty"
	}
	return ""
}
