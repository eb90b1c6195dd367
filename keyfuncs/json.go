package keyfuncs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jmespath/go-jmespath"

	"github.com/lambdalock/lambdalock/lock"
)

// Payload handles each payload once, for sources that give their events no identity.
// Name and Event are a digest of the JSON: the order of members, white space and the
// spelling of numbers and strings do not count, everything else does. Two events that
// say the same on purpose count as one; [JSON] with [EventFrom] tells them apart if
// anything in them does.
func Payload() Func[json.RawMessage] {
	return func(_ context.Context, payload json.RawMessage) (lock.Key, error) {
		text, err := canonical(payload)
		if err != nil {
			return lock.Key{}, notJSON(err)
		}
		return once("payload", digest(string(text))), nil
	}
}

// JSON locks what a JMESPath expression finds in the payload, for example
// "order.id", or "[tenant, order.id]" for several parts. Name is the canonical JSON
// of what was found: the number 17 and the string "17" are two names. Numbers keep all
// their digits; those that a float64 cannot hold are to comparisons and functions of
// the expression no numbers.
//
// The path says what is locked, not which event asks: alone it is a plain mutex.
// [Once] handles each value once, [EventFrom] takes the event from another path, and
// inside an envelope ([SQSBody], [SNSBody], [EventBridgeDetail]) the message's own id
// becomes the Event.
//
// It is an error when the path finds nothing, or an empty string, list or object, or a
// list or object that holds a null. A projection such as items[*].id leaves out items
// without an id.
//
// JSON panics if the path is no JMESPath, or if it asks for the members of an object in
// no order ("*", keys, values): deliveries of one event would get different keys.
//
// Source: https://jmespath.org/specification.html.
func JSON(path string) Func[json.RawMessage] {
	if err := check(path); err != nil {
		panic(fmt.Sprintf("lambdalock: keyfuncs.JSON(%q): %v", path, err))
	}
	return func(_ context.Context, payload json.RawMessage) (lock.Key, error) {
		doc, err := read(payload)
		if err != nil {
			return lock.Key{}, notJSON(err)
		}
		found, err := search(path, plain(doc))
		if err != nil {
			return lock.Key{}, &lock.KeyError{Field: path, Reason: "cannot be evaluated", Err: err}
		}
		if reason := lacks(found); reason != "" {
			return lock.Key{}, &lock.KeyError{Field: path, Reason: reason}
		}
		return lock.Key{Name: string(spell(nil, found))}, nil
	}
}

func notJSON(err error) error {
	return &lock.KeyError{Field: "payload", Reason: "is not JSON", Err: err}
}

// unordered finds, in the printed syntax tree, what lists the members of a map in the
// order of Go's maps. A literal is printed as one quoted line and cannot look like it.
var unordered = regexp.MustCompile(`(?m)^ *AST(ValueProjection \{|FunctionExpression \{\n *value: "(keys|values)")$`)

func check(path string) (err error) {
	defer caught(&err)
	if !utf8.ValidString(path) {
		return errors.New("is not UTF-8")
	}
	tree, err := jmespath.NewParser().Parse(path)
	if err == nil && unordered.MatchString(tree.String()) {
		return errors.New("the members of an object have no order, so that *, keys and values make no key; name the members that you mean")
	}
	return err
}

// search parses the path for every event: a compiled expression is not safe for
// concurrent use, because sort_by sorts its literals in place.
func search(path string, doc any) (found any, err error) {
	defer caught(&err)
	found, err = jmespath.Search(path, doc)
	if err == nil {
		return exact(found)
	}
	// The text of such an error holds the argument, which may be personal data.
	if i := strings.LastIndex(err.Error(), ", expected: "); i >= 0 {
		err = errors.New("an argument of a function has the wrong type" + err.Error()[i:])
	}
	return nil, err
}

// caught makes errors of the panics of the library, which has some: contains and merge
// of objects, slices with a huge step, an identifier followed by U+0080.
func caught(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%v", r)
	}
}

// plain is a tree as the library knows it. Of several members with one name the last
// counts, as in encoding/json. A number that a float64 would change stays a
// json.Number, which passes through as it is.
func plain(v any) any {
	switch v := v.(type) {
	case object:
		m := make(map[string]any, len(v))
		for _, e := range v {
			m[e.name] = plain(e.value)
		}
		return m
	case []any:
		for i, e := range v {
			v[i] = plain(e)
		}
	case json.Number:
		if f, err := v.Float64(); err == nil && shortest(f) == v {
			return f
		}
	}
	return v
}

// exact is the inverse of plain. It copies lists, which may occur several times in
// what was found.
func exact(v any) (_ any, err error) {
	switch v := v.(type) {
	case map[string]any:
		o := make(object, 0, len(v))
		for name, e := range v {
			if e, err = exact(e); err != nil {
				return nil, err
			}
			o = append(o, member{name, e})
		}
		return o.sort(), nil
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			if list[i], err = exact(e); err != nil {
				return nil, err
			}
		}
		return list, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, errors.New("the result is not a finite number")
		}
		return shortest(v), nil
	case nil, bool, string, json.Number:
		return v, nil
	}
	return nil, errors.New("the result holds an expression and not its value")
}

func shortest(f float64) json.Number {
	return number(strconv.FormatFloat(f, 'g', -1, 64))
}

// lacks says why a value is no name. A null inside is as bad as none at all: things
// that differ only in the part that is not there would share a lock. One level is
// enough, because what a path puts together is there; deeper nulls are data.
func lacks(v any) string {
	const part = "is missing in part: it holds a null, and things that differ in that part would share a lock"
	empty := v == nil || v == ""
	switch v := v.(type) {
	case object:
		for _, m := range v {
			if m.value == nil {
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
