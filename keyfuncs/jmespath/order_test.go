package jmespath_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/lambdalock/lambdalock/internal/event/canonical"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/jmespath"
	"github.com/lambdalock/lambdalock/lock"
)

// functions has every function of the library, and those of its community fork
// that see the members of an object.
var functions = []string{
	"abs", "avg", "ceil", "contains", "ends_with", "floor", "join", "keys", "length", "map", "max", "max_by", "merge", "min", "min_by", "not_null",
	"reverse", "sort", "sort_by", "starts_with", "sum", "to_array", "to_number", "to_string", "type", "values",
	"items", "from_items", "group_by", "zip", "nothing",
}

// TestKeyDoesNotDependOnTheOrderOfMembers: deliveries of one event may differ
// in it, and Go's maps have a new one each time.
func TestKeyDoesNotDependOnTheOrderOfMembers(t *testing.T) {
	t.Parallel()
	const doc = `{"a":{"k1":"v1","k2":"v2","k3":"v3","k4":"v4","k5":"v5","k6":"v6","k7":"v7","k8":"v8"},"b":{"x":{"n":1},"y":{"n":2},"z":{"n":3}},
		"list":[{"n":2,"s":"b"},{"s":"a","n":1}],"text":["b","a"],"number":17}`
	arguments := []string{"@", "a", "b", "b.x", "list", "text", "number", "[a, b]", "{p: a, q: b}", "to_array(a)", "list[0]", "list[*].n", "&n", "&@", "a || b", "`{\"l\":1,\"m\":2,\"o\":3}`"}
	paths := []string{"@", "a", "b", "[a, b]", "{q: a, p: b}", "[]", "a[]", "@[]", "[@][]", "a[*]", "b[?n]", "list[]", "list[?s=='a']", "[a][0]", "a | b", "!a", "a && b"}
	for _, f := range functions {
		for _, x := range arguments {
			paths = append(paths, fmt.Sprintf("%s(%s)", f, x))
			for _, y := range arguments {
				paths = append(paths, fmt.Sprintf("%s(%s, %s)", f, x, y))
			}
		}
	}
	var deliveries []json.RawMessage
	for range 50 {
		deliveries = append(deliveries, permuted(t, []byte(doc)))
	}
	keys := 0
	for _, path := range paths {
		key := allowed(path)
		if key == nil {
			continue
		}
		want, wrong := key(t.Context(), json.RawMessage(doc))
		again := deliveries
		if wrong != nil {
			again = deliveries[:2] // most paths, and they do not even look at the members
		}
		for _, text := range again {
			if got, err := key(t.Context(), text); got != want || (err == nil) != (wrong == nil) {
				t.Errorf("%s: %+v, %v, then %+v, %v of %s", path, want, wrong, got, err, text)
				break
			}
		}
		if wrong == nil {
			keys++
		}
	}
	if keys < 200 {
		t.Errorf("only %d of %d paths give a key", keys, len(paths))
	}
}

// allowed returns nil if the path is refused.
func allowed(path string) (key keyfuncs.Func[json.RawMessage]) {
	defer func() { _ = recover() }()
	return jmespath.Path(path)
}

// permuted returns a payload with the members of its objects in another order,
// or unchanged if it is not JSON, or if several members have one name.
func permuted(t *testing.T, payload []byte) json.RawMessage {
	t.Helper()
	v, err := canonical.Parse(payload)
	if err != nil || !shuffled(v) {
		return payload
	}
	text := canonical.Text(v)
	if again, err := canonical.JSON(text); err != nil || string(again) != string(spelled(t, payload)) {
		t.Fatalf("%s became %s, %v", payload, text, err)
	}
	return text
}

func spelled(t *testing.T, payload []byte) []byte {
	t.Helper()
	b := expect.Value(canonical.JSON(payload))(t)
	return b
}

// shuffled reports whether it shuffled the members of all objects in v.
func shuffled(v any) bool {
	switch v := v.(type) {
	case canonical.Object:
		names := map[string]bool{}
		for _, m := range v {
			if names[m.Name] || !shuffled(m.Value) {
				return false
			}
			names[m.Name] = true
		}
		rand.Shuffle(len(v), func(i, j int) { v[i], v[j] = v[j], v[i] })
	case []any:
		for _, e := range v {
			if !shuffled(e) {
				return false
			}
		}
	}
	return true
}

// TestMembersByAnotherName: a function may be called by an expression that
// spells its name.
func TestMembersByAnotherName(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"`\"keys\"`(@)", "'values'(@)", "(keys)(@)", `("keys")(@)`, `"k\u0065ys"(@)`, "((values))(@)", "k.keys(@)", "*", "@.*", "[*.a]", "{a: *}", "&*", "not_null(a, @.*)", "a[?*]", "a.* | [0]", "map(&*, @)", "max_by(@, &keys(@)[0])",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			key := allowed(path)
			if key == nil {
				return
			}
			if k, err := key(t.Context(), json.RawMessage(`{"a":1,"b":2,"k":{}}`)); err == nil || k != (lock.Key{}) {
				t.Errorf("%+v, %v; want a panic or an error", k, err)
			}
		})
	}
}
