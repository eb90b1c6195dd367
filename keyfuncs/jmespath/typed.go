package jmespath

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// Typed takes the key from the JSON of an event that was already decoded as E,
// with the names that E has in JSON:
//
//	middleware.WithLock(jmespath.Typed[Order](jmespath.Path("customer.id")), handle)
//
// It finds only what E declares. A missing number is found as 0 unless its tag
// has omitzero, and a float64 has rounded its digits. The error is a
// *lock.NoKeyError for the zero E, for one that cannot be encoded, and for a
// key that depends on U+FFFD, as which Go decodes broken characters. Typed
// panics if inner is nil.
func Typed[E any](inner keyfuncs.Func[json.RawMessage]) keyfuncs.Func[E] {
	if inner == nil {
		panic("lambdalock: jmespath.Typed(nil): pass a key function, such as jmespath.Path(\"order.id\")")
	}
	return func(ctx context.Context, event E) (lock.Key, error) {
		if v := reflect.ValueOf(event); !v.IsValid() || v.IsZero() {
			return lock.Key{}, noField[E](ctx, inner)
		}
		payload, err := json.Marshal(event)
		if err != nil {
			return lock.Key{}, &lock.NoKeyError{Reason: "has no JSON form", Err: fmt.Errorf("as %T: %w", event, err)}
		}
		k, err := inner(ctx, payload)
		if err != nil || !bytes.Contains(payload, []byte(lost)) && !bytes.Contains(payload, []byte(lostBytes)) {
			return k, err
		}
		other, err := inner(ctx, []byte(marked.Replace(string(payload))))
		if err != nil || other != k {
			return lock.Key{}, &lock.NoKeyError{Reason: "is not UTF-8 or contains U+FFFD where the key is taken from", Err: errReplaced}
		}
		return k, nil
	}
}

// noField returns the error for the zero E. It names the path that inner looks
// for, which only inner knows.
func noField[E any](ctx context.Context, inner keyfuncs.Func[json.RawMessage]) error {
	e := &lock.NoKeyError{Reason: "lacks a field that its key is taken from", Err: fmt.Errorf("it has no field of a %s: %w", reflect.TypeFor[E](), errZero)}
	var missing *lock.NoKeyError
	if _, err := inner(ctx, json.RawMessage("null")); errors.As(err, &missing) && missing != nil && missing.Field != "" {
		e.Field, e.Reason = missing.Field, "is missing"
	}
	return e
}

var errReplaced = errors.New("encoding/json decodes broken characters as U+FFFD, so different keys would be the same: let the handler take json.RawMessage")

// errZero is errUnfilled for an event that was decoded.
var errZero = errors.New("let the sender fill in what is missing, or correct the path or a json tag; if the event comes from another source, `lambdalock explain` names the key function")

// What encoding/json writes for U+FFFD, and for bytes that are not UTF-8.
const lost, lostBytes = "\ufffd", `\ufffd`

// marked puts another character in their place. A backslash that is escaped
// begins no escape: a text may hold the six characters of lostBytes.
var marked = strings.NewReplacer(`\\`, `\\`, lost, "\ue000", lostBytes, "\ue000")
