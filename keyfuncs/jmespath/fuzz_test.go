package jmespath_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/internal/event/canonical"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/jmespath"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// fuzzKeys lets key functions meet payloads that grow out of those in testdata:
// none may panic, and a key must be deterministic and good enough to be locked.
func fuzzKeys(f *testing.F, keys map[string]keyfuncs.Func[json.RawMessage]) { // F26, F27
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("no payloads: %v", err)
	}
	for _, file := range files {
		b := expect.Value(os.ReadFile(file))(f)
		f.Add(b)
	}
	locker := expect.Value(lock.New(memstore.New(), &lock.Options{Logger: slog.New(slog.DiscardHandler)}))(f)
	f.Fuzz(func(t *testing.T, payload []byte) {
		for name, key := range keys {
			k, err := key(t.Context(), payload)
			if again, _ := key(t.Context(), payload); k != again {
				t.Errorf("%s: key %+v, then %+v", name, k, again)
			}
			if err != nil {
				if !errors.As(err, new(*lock.NoKeyError)) {
					t.Errorf("%s: error of type %T", name, err)
				}
				continue
			}
			held, err := locker.Acquire(t.Context(), lock.Key{Name: name + k.Name, Event: k.Event, Order: k.Order})
			if err != nil || k.Name == "" {
				t.Errorf("%s: key %+v: %v", name, k, err)
				continue
			}
			_ = held.Release()
		}
	})
}

func FuzzPayload(f *testing.F) {
	fuzzKeys(f, map[string]keyfuncs.Func[json.RawMessage]{"Payload": jmespath.Payload})
}

func FuzzKey(f *testing.F) {
	keys := map[string]keyfuncs.Func[json.RawMessage]{}
	for _, path := range []string{
		"@", "order.id", "[tenant, order.customer.id]", "{id: id, shelf: data.changes[0][-1].shelf}", "order.lines[?price > `5`].sku",
		"data.changes[][] | sort_by(@, &delta)[].delta", "to_string(data)", "max(order.lines[*].price)",
	} {
		keys[path] = jmespath.Path(path)
	}
	fuzzKeys(f, keys)
}

func FuzzPath(f *testing.F) { // F26, F27
	for _, c := range [][2]string{
		{"a.b[0]", `{"a":{"b":[12345678901234567891]}}`},
		{"[a, b || c]", `{"a":"\ud800","c":1}`},
		{"{x: @[?n >= `1`].n | [0]}", `[{"n":1}]`},
		{"sort_by(@, &n)[::-1].n", `[{"n":2},{"n":1}]`},
		{"contains(@, `[]`)", `[[]]`},
		{"merge(@, `1`)", `{}`},
		{"[1::9223372036854775807]", `[1,2]`},
		{"a\u0080", `1`},
		{"map(&to_number(@), @)", `["1","NaN"]`},
		{"@.*", `{"a":1,"b":2}`},
		{"!a && not_null(b, `{}`)", `{"b":3}`},
		{"reverse(join('-', @))", "[\"\xff\",\"\\ud800\"]"},
		{"max_by(@, &[0])", `[[1],[2]]`},
		{"type(@[].a)", `[{"a":1},[{"a":2}]]`},
		{"avg(@)", `[]`},
		{"to_array(@)", `1`},
	} {
		f.Add(c[0], []byte(c[1]))
	}
	f.Fuzz(func(t *testing.T, path string, payload []byte) {
		if len(path) > 80 { // a longer one may double the payload too often
			return
		}
		key := compiled(t, path)
		if key == nil {
			return
		}
		k, err := key(t.Context(), payload)
		for range 50 {
			if again, err2 := key(t.Context(), permuted(t, payload)); k != again || (err == nil) != (err2 == nil) {
				t.Fatalf("%+v, %v, then %+v, %v", k, err, again, err2)
			}
		}
		if err != nil {
			if !errors.As(err, new(*lock.NoKeyError)) || k != (lock.Key{}) {
				t.Errorf("%+v, %v", k, err)
			}
			return
		}
		halves := strings.Contains(k.Name, `\ud`) // join may bring two of them together
		if got, err := canonical.JSON([]byte(k.Name)); err != nil || k.Event != "" || k.Order != "" || string(got) != k.Name && !halves {
			t.Errorf("%+v is not canonical: %s, %v", k, got, err)
		}
	})
}

// compiled returns nil for what is not a path. To say so in one line is the
// only reason to panic.
func compiled(t *testing.T, path string) (key keyfuncs.Func[json.RawMessage]) {
	defer func() {
		if r := recover(); r != nil {
			if s, ok := r.(string); !ok || !strings.HasPrefix(s, "lambdalock: jmespath.Path(") || strings.Contains(s, "\n") {
				t.Errorf("panic %v", r)
			}
		}
	}()
	return jmespath.Path(path)
}
