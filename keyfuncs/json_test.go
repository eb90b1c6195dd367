package keyfuncs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

func nested(depth int) string {
	return strings.Repeat(`{"a":[`, depth/2) + strings.Repeat("[", depth%2) + strings.Repeat("]", depth%2) + strings.Repeat("]}", depth/2)
}

func TestCanonical(t *testing.T) { // F28
	t.Parallel()
	huge, mixed, sorted := "1"+strings.Repeat("0", 30), `"c":0`, `"c":0`
	for i := range 50 {
		mixed = fmt.Sprintf(`"b":%d,"a":%d,%s`, i, i, mixed)
	}
	for _, name := range []string{"b", "a"} {
		for i := range 50 {
			sorted = fmt.Sprintf(`"%s":%d,%s`, name, i, sorted)
		}
	}
	for want, payloads := range map[string][]string{
		`{"a":1,"b":[2,3]}`:          {`{"b":[2,3],"a":1}`, " {\t\"a\" :1.0 ,\r\n\"b\": [ 2 , 3 ] } ", `{"\u0062":[2e0,30e-1],"\u0061":0.1e1}`},
		`{"a":1,"a":2,"b":0}`:        {`{"b":0,"a":1,"a":2}`, `{"a":1,"b":0,"a":2}`, `{"a":1,"\u0061":2,"b":0}`},
		"{" + sorted + "}":           {"{" + mixed + "}"},
		"1." + huge[1:] + "00000001": {"1." + huge[1:] + "00000001"},
		huge + "000000001e-39":       {"1." + huge[1:] + "000000001"},
		`17`:                         {`17`, `17.0`, `1.7e1`, `170e-1`, `1.7E+01`, `0.017e3`, `17e-0`, `17e000000000000000000000`},
		`1.5`:                        {`1.50`, `15e-1`, `0.15e1`},
		`0`:                          {`-0`, `0.000`, `-0e5`, `0e999999999999999999`, `0e-99999999999999999999999`},
		`-0.001`:                     {`-0.001`, `-1e-3`, `-100E-5`},
		`12345678901234567890`:       {`12345678901234567890`, `1.2345678901234567890e19`},
		`1e999999999999999999999`:    {`1e999999999999999999999`, `10e999999999999999999998`, `0.01E+1000000000000000000001`, `1e0999999999999999999999`},
		`1e-999999999999999999999`:   {`1e-999999999999999999999`, `100e-1000000000000000000001`, `0.1e-999999999999999999998`},
		`1e1000000000000000000`:      {`1e1000000000000000000`, `10e999999999999999999`, `0.1e1000000000000000001`},
		`1e-999999999999999999`:      {`10e-1000000000000000000`, `0.1e-999999999999999998`, `1e-999999999999999999`},
		`1e9223372036854775808`:      {`10e9223372036854775807`, `1e9223372036854775808`},
		huge + "000000000":           {`1e39`, huge + "000000000.0"},
		`1e40`:                       {`1e40`, huge + "0000000000", `10e39`},
		`0.` + huge[1:] + `00000001`: {`1e-38`, `0.001e-35`},
		`1e-39`:                      {`1e-39`, `0.` + huge[1:] + `000000001`},
		huge + huge[1:][:9] + "1":    {huge + huge[1:][:9] + "1", huge + huge[1:][:9] + "1.0", `0.` + huge + huge[1:][:9] + `1e41`},
		`"A/"`:                       {`"A/"`, `"\u0041\/"`, `"\u0041\u002F"`},
		`"\u0000\u0008\u0009\u000a\u000c\u000d\u001f\"\\"`: {`"\u0000\b\t\n\f\r\u001F\"\\"`, `"\u0000\u0008\u0009\u000A\u000c\u000d\u001f\u0022\u005C"`},
		"\"<&>é\u2028💡\x7f\"":                              {`"\u003c&\u003E\u00e9\u2028\ud83d\udca1\u007f"`, "\"<&>é\u2028💡\x7f\""},
		"\"\ufffd\"":                                       {`"\ufffd"`, `"\uFFFD"`, "\"\ufffd\""},
		`"\udca1\ud83dx"`:                                  {`"\uDCA1\uD83D\u0078"`, `"\udca1\ud83dx"`},
		"\"\xff\xffud83d\"":                                {"\"\xff\xffud83d\"", "\"\xff\xff\\u0075d83d\""},
		`[null,true,false,[],{},""]`:                       {"[null , true,\nfalse, [ ], { } , \"\"]"},
		`{"":{"\ud800":1}}`:                                {`{"":{"\uD800":1.0}}`},
	} {
		for _, p := range payloads {
			if got, err := keyfuncs.Canonical([]byte(p)); string(got) != want || err != nil {
				t.Errorf("%s: %s, %v; want %s", p, got, err, want)
			}
		}
	}
}

func TestDifferentPayloadsHaveDifferentKeys(t *testing.T) { // F28
	t.Parallel()
	seen := map[lock.Key]string{}
	for _, p := range []string{
		`12345678901234567890`, `12345678901234567891`, `-12345678901234567891`, `1e999999999999999999999`, `1e999999999999999999998`, `1e-999999999999999999999`,
		`0.1`, `0.1000000000000000055511151231257827`, `17`, `"17"`, `[17]`, `null`, `"null"`, `""`, `[]`, `{}`, `false`, `0`, `[[]]`, `[[],[]]`, `[{}]`, `[null]`,
		`{"a":1,"a":2}`, `{"a":2,"a":1}`, `{"a":2}`, `{"a":1}`, `{"a":null}`, `{"a":1,"b":2}`, `{"a":{"b":1}}`, `{"a":[1,2]}`, `{"a":[2,1]}`, `{"A":1}`,
		`"\ufffd"`, `"\ud800"`, `"\ud801"`, `"\udc00"`, `"\udc00\ud800"`, `"\ud800\udc00"`, `"\\ud800"`, "\"\x80\"", "\"\x81\"", "\"\xff\"", "\"\xff\xff\"", "\"\xffud800\"",
		"\"\xff\\ud800\"", "\"\\ud800\xff\"", "\"\xed\xa0\x80\"", "\"\xed\xa0\x80\xed\xb0\x80\"", `"\\u0041"`, `"A"`, `"a"`, `"\u00e9"`, `"e\u0301"`,
		`{"\ud800":1}`, `{"\ud801":1}`, `{"\ufffd":1}`, "{\"\xed\xa0\x80\":1}", "{\"\xff\":1}", `{"\\ud800":1}`, `"a\",\"b"`, `["a","b"]`, `["a\",\"b"]`,
	} {
		k, err := keyfuncs.Payload()(t.Context(), json.RawMessage(p))
		if other, ok := seen[k]; ok || err != nil {
			t.Errorf("%q and %q both give %+v, %v", p, other, k, err)
		}
		seen[k] = p
	}
}

func TestPayload(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"payload-order.json", "payload-nested.json"} {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		k, err := keyfuncs.Payload()(t.Context(), b)
		if err != nil || len(k.Event) != 43 || k != (lock.Key{Name: "payload/" + k.Event, Event: k.Event}) {
			t.Errorf("%s: %+v, %v", name, k, err)
		}
		var spaced bytes.Buffer
		if err := json.Indent(&spaced, b, "\t", " "); err != nil {
			t.Fatal(err)
		}
		if again, _ := keyfuncs.Payload()(t.Context(), spaced.Bytes()); again != k {
			t.Errorf("%s: white space counts: %+v", name, again)
		}
	}
}

func TestPayloadIsNotJSON(t *testing.T) { // F26
	t.Parallel()
	for _, p := range []string{
		"", " ", "{", `{"a":}`, "1 2", "{}x", "{} []", "01", "1.", "+1", "NaN", `"\x"`, `"\u12"`, "\"\n\"", "'a'", "\ufeff{}", nested(10_001), strings.Repeat("[", 1e6), strings.Repeat(`{"a":`, 1e6),
	} {
		for name, key := range map[string]keyfuncs.Func[json.RawMessage]{"Payload": keyfuncs.Payload(), "JSON": keyfuncs.JSON("@")} {
			k, err := key(t.Context(), json.RawMessage(p))
			if e, ok := err.(*lock.KeyError); !ok || e.Field != "payload" || e.Reason != "is not JSON" || e.Err == nil || k != (lock.Key{}) {
				t.Errorf("%s of %.20q: %+v, %v", name, p, k, err)
			}
		}
	}
	for _, depth := range []int{9_999, 10_000} {
		if got, err := keyfuncs.Canonical([]byte(nested(depth))); string(got) != nested(depth) || err != nil {
			t.Errorf("depth %d: %d bytes, %v", depth, len(got), err)
		}
		if k, err := keyfuncs.JSON("@")(t.Context(), json.RawMessage(nested(depth))); k.Name != nested(depth) || err != nil {
			t.Errorf("depth %d: %d bytes, %v", depth, len(k.Name), err)
		}
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	order, err := os.ReadFile("testdata/payload-order.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, payload, name string }{
		{"order.id", string(order), "90071992547409931234"},
		{"order.customer.name", string(order), `"Zoë O’Neill"`},
		{"[tenant, order.id]", string(order), `["acme-eu",90071992547409931234]`},
		{"{t: tenant, id: order.customer.id}", string(order), `{"id":"c-8841","t":"acme-eu"}`},
		{"order.lines[?quantity > `5`].sku", string(order), `["BULB-E14"]`},
		{"order.lines[*].price", string(order), `[39.9,1.5]`},
		{"sum(order.lines[].quantity)", string(order), "12"},
		{"order.lines[1]", string(order), `{"note":"warm 💡","price":1.5,"quantity":10,"sku":"BULB-E14"}`},
		{"order.lines", string(order), `[{"note":null,"price":39.9,"quantity":2,"sku":"LAMP-7"},{"note":"warm 💡","price":1.5,"quantity":10,"sku":"BULB-E14"}]`},
		{"order.customer.vip", string(order), "false"},
		{"order.placedAt || tenant", string(order), `"2026-10-02T09:14:07.250Z"`},
		{"join('/', [tenant, order.number])", string(order), `"acme-eu/B-2026/0017"`},
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
	} {
		got, err := keyfuncs.JSON(c.path)(t.Context(), json.RawMessage(c.payload))
		if got != (lock.Key{Name: c.name}) || err != nil {
			t.Errorf("%s of %.30s: %+v, %v; want %s", c.path, c.payload, got, err, c.name)
		}
	}
}

func TestJSONFindsNoKey(t *testing.T) { // F26
	t.Parallel()
	for _, c := range []struct{ path, payload, within string }{
		{"a", `{}`, "is missing"},
		{"a", `{"a":null}`, "is missing"},
		{"a", `{"a":""}`, "is missing"},
		{"a", `{"a":[]}`, "is missing"},
		{"a", `{"a":{}}`, "is missing"},
		{"a.b[0]", `{"a":"b"}`, "is missing"},
		{"a[?b == `1`]", `{"a":[{"b":2}]}`, "is missing"},
		{"[a, b]", `{"a":1}`, "missing in part"},
		{"[a, b]", `{}`, "missing in part"},
		{"{x: a, y: b}", `{"a":1,"b":null}`, "missing in part"},
		{"a", `{"a":[1,null]}`, "missing in part"},
		{"length(a)", `{"a":17}`, "wrong type, expected: "},
		{"abs(a)", `{"a":12345678901234567891}`, "wrong type"},
		{"nothing(a)", `{}`, "unknown function"},
		{"abs(a, a)", `{"a":1}`, "number of args"},
		{"@[::0]", `[1]`, "step"},
		{"to_number('NaN')", `{}`, "finite"},
		{"[to_number('inf')]", `{}`, "finite"},
		{"&a", `{}`, "expression"},
		{"{a: [&a]}", `{}`, "expression"},
		// The library panics for these.
		{"contains(@, `[]`)", `[[]]`, "uncomparable"},
		{"merge(@, `1`)", `{}`, "conversion"},
		{"[1::9223372036854775807]", `[1,2,3]`, "out of range"},
		{"`1`(a)", `{}`, "conversion"},
	} {
		k, err := keyfuncs.JSON(c.path)(t.Context(), json.RawMessage(c.payload))
		e, ok := err.(*lock.KeyError)
		if !ok || e.Field != c.path || !strings.Contains(e.Error(), c.within) || k != (lock.Key{}) {
			t.Errorf("%s of %s: %+v, %v; want a KeyError that says %q", c.path, c.payload, k, err, c.within)
		}
	}
}

func TestJSONErrorsHoldNoData(t *testing.T) { // F29
	t.Parallel()
	_, err := keyfuncs.JSON("abs(mail)")(t.Context(), json.RawMessage(`{"mail":"of, expected: jane@example.com"}`))
	if err == nil || strings.Contains(err.Error(), "jane") || !strings.Contains(err.Error(), `"number"`) {
		t.Errorf("%v, want the type that is expected and not what was found", err)
	}
}

func TestJSONPathIsWrong(t *testing.T) {
	t.Parallel()
	for path, within := range map[string]string{
		"": "Incomplete", "a.": "Expected", "a[": "Expected", "a b": "end of the expression", "a\nb": "end of the expression", "'a": "Unclosed", "`{`": "JSON", "a\u0080": "out of range", "'\xff'": "UTF-8",
		"*": "no order", "a.*": "no order", "a.*.b[0]": "no order", "keys(@)": "no order", "length(values(a))": "no order", "a[?contains(keys(@), 'b')]": "no order", "{x: [*.b]}": "no order",
	} {
		func() {
			defer func() {
				got, want := fmt.Sprint(recover()), fmt.Sprintf("lambdalock: keyfuncs.JSON(%q): ", path)
				if !strings.HasPrefix(got, want) || !strings.Contains(got[len(want):], within) || strings.Contains(got, "\n") {
					t.Errorf("%q: panic %q, want one line %q that says %q", path, got, want, within)
				}
			}()
			keyfuncs.JSON(path)
		}()
	}
}

func TestJSONInsideAMessage(t *testing.T) {
	t.Parallel()
	key := keyfuncs.SQSBody(keyfuncs.JSON("order.id"))
	want := lock.Key{Name: "17", Event: "m1"}
	if got, err := key(t.Context(), events.SQSMessage{MessageId: "m1", Body: `{"order":{"id":17}}`}); got != want || err != nil {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	_, err := key(t.Context(), events.SQSMessage{MessageId: "m1", Body: `{}`})
	if e := (*lock.KeyError)(nil); !errors.As(err, &e) || e.Field != "body.order.id" {
		t.Errorf("%v, want a KeyError of body.order.id", err)
	}
}

// A literal that sort_by sorts in place must be new for each event.
func TestJSONIsSafeForConcurrentUse(t *testing.T) { // F39
	t.Parallel()
	key := keyfuncs.JSON("[`[3,1,2]` | [@[0], sort_by(@, &@)[0]], id]")
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
