package jmespath

import (
	"bytes"
	"context"
	"encoding/json"
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
			return lock.Key{}, &lock.NoKeyError{Field: "event", Reason: fmt.Sprintf("has no field of a %s", reflect.TypeFor[E]())}
		}
		payload, err := json.Marshal(event)
		if err != nil {
			return lock.Key{}, &lock.NoKeyError{Field: "event", Reason: fmt.Sprintf("is a %T, which has no JSON form", event), Err: err}
		}
		k, err := inner(ctx, payload)
		if err != nil || !bytes.Contains(payload, []byte(lost)) && !bytes.Contains(payload, []byte(lostBytes)) {
			return k, err
		}
		other, err := inner(ctx, []byte(strings.NewReplacer(lost, "\ue000", lostBytes, "\ue000").Replace(string(payload))))
		if err != nil || other != k {
			return lock.Key{}, &lock.NoKeyError{Field: "event", Reason: "has U+FFFD where the key is taken from, as which Go decodes broken characters, so different keys would be the same: let the handler take json.RawMessage", Err: err}
		}
		return k, nil
	}
}

// What encoding/json writes for U+FFFD, and for bytes that are not UTF-8.
const lost, lostBytes = "\ufffd", `\ufffd`
