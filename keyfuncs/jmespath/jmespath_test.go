package jmespath_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/jmespath"
	"github.com/lambdalock/lambdalock/lock"
)

func TestKey(t *testing.T) {
	t.Parallel()
	b := expect.Value(os.ReadFile("testdata/payload-order.json"))(t)
	order := string(b)
	for _, c := range []struct{ path, payload, name string }{
		{"order.id", order, "90071992547409931234"},
		{"order.customer.name", order, `"Zoë O’Neill"`},
		{"[tenant, order.id]", order, `["acme-eu",90071992547409931234]`},
		{"{t: tenant, id: order.customer.id}", order, `{"id":"c-8841","t":"acme-eu"}`},
		{"order.lines[?quantity > `5`].sku", order, `["BULB-E14"]`},
		{"order.lines[*].price", order, `[39.9,1.5]`},
		{"sum(order.lines[].quantity)", order, "12"},
		{"order.lines[1]", order, `{"note":"warm 💡","price":1.5,"quantity":10,"sku":"BULB-E14"}`},
		{"order.lines", order, `[{"note":null,"price":39.9,"quantity":2,"sku":"LAMP-7"},{"note":"warm 💡","price":1.5,"quantity":10,"sku":"BULB-E14"}]`},
		{"order.customer.vip", order, "false"},
		{"order.placedAt || tenant", order, `"2026-10-02T09:14:07.250Z"`},
		{"join('/', [tenant, order.number])", order, `"acme-eu/B-2026/0017"`},
		{"a", `{"a":17}`, "17"},
		{"a", `{"a":"17"}`, `"17"`},
		{"a", `{"a":-0.0}`, "0"},
		{"a", `{"a":0.1}`, "0.1"},
		{"a", `{"a":1e400}`, "1e400"},
		{"a", `{"a":1e-400}`, "1e-400"},
		{"a", `{"a":9007199254740993}`, "9007199254740993"},
		{"to_string(a)", `{"a":90071992547409930.0e1}`, `"900719925474099300"`},
		{"a", `{"a":1,"a":2}`, "2"},
		{"a", `{"a":"\ud800"}`, `"\ud800"`},
		{`"\u0061"`, `{"a":1}`, "1"},
		{"[0]", `[{"b":2,"a":1}]`, `{"a":1,"b":2}`},
		{"sort_by(@, &n)[0].n", `[{"n":2},{"n":1}]`, "1"},
		{"@", "0", "0"},
		{"'keys'", "{}", `"keys"`},
		{"[keys, \"*\"]", `{"keys":1,"*":2}`, "[1,2]"},
		{"`\"ASTValueProjection {\\nASTValueProjection {\"`", "0", `"ASTValueProjection {\u000aASTValueProjection {"`},
		{"@", nested(9_999), nested(9_999)},
		{"@", nested(10_000), nested(10_000)},
	} {
		t.Run(short(c.path)+" of "+short(c.payload), func(t *testing.T) {
			t.Parallel()
			got, err := jmespath.Path(c.path)(t.Context(), json.RawMessage(c.payload))
			if got != (lock.Key{Name: c.name}) || err != nil {
				t.Errorf("%+v, %v; want %s", got, err, c.name)
			}
		})
	}
}

func TestKeyFindsNothing(t *testing.T) { // F26
	t.Parallel()
	for _, c := range []struct{ path, payload, within string }{
		{"a", `{}`, "a is missing or empty: let the sender fill in the field that the path names, or correct the path; if the event comes from another source, `lambdalock explain` names the key function"},
		{"a", `{"a":null}`, "is missing"},
		{"a", `{"a":""}`, "is missing"},
		{"a", `{"a":[]}`, "is missing"},
		{"a", `{"a":{}}`, "is missing"},
		{"a.b[0]", `{"a":"b"}`, "is missing"},
		{"a[?b == `1`]", `{"a":[{"b":2}]}`, "is missing"},
		{"[a, b]", `{"a":1}`, "would share a lock: let the sender fill in the field"},
		{"[a, b]", `{}`, "missing in part"},
		{"{x: a, y: b}", `{"a":1,"b":null}`, "missing in part"},
		{"a", `{"a":[1,null]}`, "missing in part"},
		{"length(a)", `{"a":17}`, "wrong type, expected: "},
		{"abs(a)", `{"a":12345678901234567891}`, "wrong type"},
		{"abs(a, a)", `{"a":1}`, "number of args"},
		{"@[::0]", `[1]`, "step"},
		{"to_number('NaN')", `{}`, "finite"},
		{"[to_number('inf')]", `{}`, "finite"},
		{"&a", `{}`, "expression"},
		{"{a: [&a]}", `{}`, "expression"},
	} {
		t.Run(short(c.path)+" of "+c.payload, func(t *testing.T) {
			t.Parallel()
			refuses(t, c.path, c.payload, c.within)
		})
	}
}

// refuses checks that the path gives no key for the payload, and says why.
func refuses(t *testing.T, path, payload, within string) {
	t.Helper()
	k, err := jmespath.Path(path)(t.Context(), json.RawMessage(payload))
	e, ok := err.(*lock.NoKeyError)
	if !ok || e.Field != path || !strings.Contains(e.Error(), within) || k != (lock.Key{}) {
		t.Errorf("%+v, %v; want a NoKeyError that says %q", k, err, within)
	}
}

// TestKeySurvivesPanicsOfTheLibrary: each of these paths makes it panic.
func TestKeySurvivesPanicsOfTheLibrary(t *testing.T) { // F26
	t.Parallel()
	for _, c := range []struct{ path, payload, within string }{
		{"contains(@, `[]`)", `[[]]`, "uncomparable"},
		{"merge(@, `1`)", `{}`, "conversion"},
		{"[1::9223372036854775807]", `[1,2,3]`, "out of range"},
		{"`1`(a)", `{}`, "conversion"},
	} {
		t.Run(short(c.path)+" of "+c.payload, func(t *testing.T) {
			t.Parallel()
			refuses(t, c.path, c.payload, c.within)
		})
	}
}

// TestKeyErrorsHoldNoData: the library quotes the argument.
func TestKeyErrorsHoldNoData(t *testing.T) { // F29
	t.Parallel()
	_, err := jmespath.Path("abs(mail)")(t.Context(), json.RawMessage(`{"mail":"of, expected: jane@example.com"}`))
	if err == nil || strings.Contains(err.Error(), "jane") || !strings.Contains(err.Error(), `"number"`) {
		t.Errorf("%v, want the type that is expected and not what was found", err)
	}
}

func TestPathIsWrong(t *testing.T) {
	t.Parallel()
	for path, within := range map[string]string{
		"": "Incomplete", "a.": "Expected", "a[": "Expected", "a b": "end of the expression", "a\nb": "end of the expression", "'a": "Unclosed", "`{`": "JSON", "a\u0080": "out of range", "'\xff'": "UTF-8",
		"*": "no order", "a.*": "no order", "a.*.b[0]": "no order", "keys(@)": "no order", "length(values(a))": "no order", "a[?contains(keys(@), 'b')]": "no order", "{x: [*.b]}": "no order",
		"nosuch(a)": "unknown function", "length([join(',', a), nosuch()])": "unknown function",
	} {
		t.Run(short(path), func(t *testing.T) {
			t.Parallel()
			defer func() {
				got, want := fmt.Sprint(recover()), fmt.Sprintf("lambdalock: jmespath.Path(%q): ", path)
				if !strings.HasPrefix(got, want) || !strings.Contains(got[len(want):], within) || strings.Contains(got, "\n") {
					t.Errorf("panic %q, want one line %q that says %q", got, want, within)
				}
			}()
			jmespath.Path(path)
		})
	}
}

func TestKeyInsideAMessage(t *testing.T) {
	t.Parallel()
	key := keyfuncs.SQSBody(jmespath.Path("order.id"))
	want := lock.Key{Name: "17", Event: "m1"}
	if got, err := key(t.Context(), events.SQSMessage{MessageId: "m1", Body: `{"order":{"id":17}}`}); got != want || err != nil {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	_, err := key(t.Context(), events.SQSMessage{MessageId: "m1", Body: `{}`})
	if e := (*lock.NoKeyError)(nil); !errors.As(err, &e) || e.Field != "body.order.id" {
		t.Errorf("%v, want a NoKeyError of body.order.id", err)
	}
}

// TestOrderFromPath: the quotes of a string must not hide a number or a time,
// or a later event looks stale and is lost.
func TestOrderFromPath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ path, earlier, later string }{
		{"v", `{"v":9}`, `{"v":10}`},
		{"v", `{"v":"9"}`, `{"v":"10"}`},
		{"v", `{"v":"2026-11-21T10:00:30Z"}`, `{"v":"2026-11-21T10:00:30.5Z"}`},
		{"v", `{"v":"2026-11-21T11:30:00+02:00"}`, `{"v":"2026-11-21T10:00:00Z"}`},
		{"v", `{"v":"a"}`, `{"v":"a b"}`},
		{"join('-', [year, month])", `{"year":"2026","month":"09"}`, `{"year":"2026","month":"10"}`},
		{"[major, minor]", `{"major":1,"minor":9}`, `{"major":1,"minor":10}`},
		{"{major: major, minor: minor}", `{"major":1,"minor":9}`, `{"major":1,"minor":10}`},
	} {
		t.Run(c.path+" of "+short(c.later), func(t *testing.T) {
			t.Parallel()
			key := keyfuncs.OrderFrom(jmespath.Path("'document'"), jmespath.Path(c.path))
			earlier, err := key(t.Context(), json.RawMessage(c.earlier))
			later, err2 := key(t.Context(), json.RawMessage(c.later))
			refused := errors.As(err, new(*lock.NoKeyError)) && errors.As(err2, new(*lock.NoKeyError))
			if ordered := err == nil && err2 == nil && earlier.Order < later.Order; !ordered && !refused || refused != strings.Contains(c.path, "major") {
				t.Errorf("%q, %v, then %q, %v", earlier.Order, err, later.Order, err2)
			}
		})
	}
}

// TestKeyIsSafeForConcurrentUse: the library sorts literals in place, so each
// event needs literals of its own.
func TestKeyIsSafeForConcurrentUse(t *testing.T) { // F39
	t.Parallel()
	key := jmespath.Path("[`[3,1,2]` | [@[0], sort_by(@, &@)[0]], id]")
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for range 20 {
				want := fmt.Sprintf("[[3,1],%d]", i)
				if k, err := key(t.Context(), json.RawMessage(fmt.Sprintf(`{"id":%d}`, i))); k.Name != want || err != nil {
					t.Errorf("%s, %v; want %s", k.Name, err, want)
				}
			}
		})
	}
	wg.Wait()
}
