package canonical_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/internal/event/canonical"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// short names a case by its text.
func short(text string) string { return fmt.Sprintf("%.60q", text) }

func nested(depth int) string {
	return strings.Repeat(`{"a":[`, depth/2) + strings.Repeat("[", depth%2) + strings.Repeat("]", depth%2) + strings.Repeat("]}", depth/2)
}

func TestJSON(t *testing.T) { // F28
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
	for want, texts := range map[string][]string{
		`{"a":1,"b":[2,3]}`:          {`{"b":[2,3],"a":1}`, " {\t\"a\" :1.0 ,\r\n\"b\": [ 2 , 3 ] } ", `{"\u0062":[2e0,30e-1],"\u0061":0.1e1}`},
		`{"a":1,"a":2,"b":0}`:        {`{"b":0,"a":1,"a":2}`, `{"a":1,"b":0,"a":2}`, `{"a":1,"\u0061":2,"b":0}`},
		"{" + sorted + "}":           {"{" + mixed + "}"},
		"1." + huge[1:] + "00000001": {"1." + huge[1:] + "00000001"},
		huge + "000000001e-39":       {"1." + huge[1:] + "000000001"},
		`17`:                         {`17`, `17.0`, `1.7e1`, `170e-1`, `1.7E+01`, `0.017e3`, `17e-0`, `17e000000000000000000000`},
		`1.5`:                        {`1.50`, `15e-1`, `0.15e1`},
		`0.5`:                        {`0.5`, `5e-1`, `50E-2`},
		`0`:                          {`-0`, `0.000`, `-0e5`, `0e999999999999999999`, `0e-99999999999999999999999`},
		`-0.001`:                     {`-0.001`, `-1e-3`, `-100E-5`},
		`12345678901234567890`:       {`12345678901234567890`, `1.2345678901234567890e19`},
		`1e999999999999999999999`:    {`1e999999999999999999999`, `10e999999999999999999998`, `0.01E+1000000000000000000001`, `1e0999999999999999999999`},
		`1e-999999999999999999999`:   {`1e-999999999999999999999`, `100e-1000000000000000000001`, `0.1e-999999999999999999998`},
		`1e1000000000000000000`:      {`1e1000000000000000000`, `10e999999999999999999`, `0.1e1000000000000000001`},
		`1e-999999999999999999`:      {`10e-1000000000000000000`, `0.1e-999999999999999998`, `1e-999999999999999999`},
		`1e9223372036854775808`:      {`10e9223372036854775807`, `1e9223372036854775808`},
		`1e-9223372036854775809`:     {`0.1e-9223372036854775808`, `1e-9223372036854775809`},
		huge + "000000000":           {`1e39`, huge + "000000000.0"},
		`1e40`:                       {`1e40`, huge + "0000000000", `10e39`},
		`0.` + huge[1:] + `00000001`: {`1e-38`, `0.001e-35`},
		`1e-39`:                      {`1e-39`, `0.` + huge[1:] + `000000001`},
		huge + huge[1:][:9] + "1":    {huge + huge[1:][:9] + "1", huge + huge[1:][:9] + "1.0", `0.` + huge + huge[1:][:9] + `1e41`},
		`"A/"`:                       {`"A/"`, `"\u0041\/"`, `"\u0041\u002F"`},
		`"a b"`:                      {`"a b"`, `"a\u0020b"`},
		`"\u0000\u0008\u0009\u000a\u000c\u000d\u001f\"\\"`: {`"\u0000\b\t\n\f\r\u001F\"\\"`, `"\u0000\u0008\u0009\u000A\u000c\u000d\u001f\u0022\u005C"`},
		"\"<&>é\u2028💡\x7f\"":                              {`"\u003c&\u003E\u00e9\u2028\ud83d\udca1\u007f"`, "\"<&>é\u2028💡\x7f\""},
		"\"\ufffd\"":                                       {`"\ufffd"`, `"\uFFFD"`, "\"\ufffd\""},
		`"\udca1\ud83dx"`:                                  {`"\uDCA1\uD83D\u0078"`, `"\udca1\ud83dx"`},
		"\"\xff\xffud83d\"":                                {"\"\xff\xffud83d\"", "\"\xff\xff\\u0075d83d\""},
		`[null,true,false,[],{},""]`:                       {"[null , true,\nfalse, [ ], { } , \"\"]"},
		`{"":{"\ud800":1}}`:                                {`{"":{"\uD800":1.0}}`},
	} {
		for _, text := range texts {
			t.Run(short(text), func(t *testing.T) {
				t.Parallel()
				if got, err := canonical.JSON([]byte(text)); string(got) != want || err != nil {
					t.Errorf("%s, %v; want %s", got, err, want)
				}
			})
		}
	}
}

func TestNotJSON(t *testing.T) { // F26
	t.Parallel()
	for _, text := range []string{
		"", " ", "{", `{"a":}`, "1 2", "{}x", "{} []", "01", "1.", "+1", "NaN", `"\x"`, `"\u12"`, "\"\n\"", "'a'", "\ufeff{}",
		nested(10_001), strings.Repeat("[", 1e6), strings.Repeat(`{"a":`, 1e6),
	} {
		t.Run(short(text), func(t *testing.T) {
			t.Parallel()
			if got, err := canonical.JSON([]byte(text)); got != nil || err == nil {
				t.Errorf("%q, %v; want an error", got, err)
			}
		})
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	for _, depth := range []int{9_999, 10_000} {
		if got, err := canonical.JSON([]byte(nested(depth))); string(got) != nested(depth) || err != nil {
			t.Errorf("depth %d: %d bytes, %v", depth, len(got), err)
		}
	}
}

func TestParseWritten(t *testing.T) {
	t.Parallel()
	got, err := canonical.ParseWritten([]byte(`{"b":1.0,"a":[-0,1E2],"b":null}`))
	want := canonical.Object{{Name: "b", Value: json.Number("1.0")}, {Name: "a", Value: []any{json.Number("-0"), json.Number("1E2")}}, {Name: "b"}}
	if !reflect.DeepEqual(got, want) || err != nil {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

func TestUTF16(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]uint16{
		`""`:                  {},
		`"aé€"`:               {'a', 'é', '€'},
		`"💡\ud83d\udca1"`:     {0xd83d, 0xdca1, 0xd83d, 0xdca1},
		`"\ud83d"`:            {0xd83d},
		`"\udca1\ud83dx"`:     {0xdca1, 0xd83d, 'x'},
		"\"\xffud83d\"":       {0xfffd, 'u', 'd', '8', '3', 'd'},
		"\"\xff\xff\\ud83d\"": {0xfffd, 0xfffd, 0xd83d},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			v := expect.Value(canonical.Parse([]byte(text)))(t)
			if got := canonical.UTF16(v.(string)); !slices.Equal(got, want) {
				t.Errorf("%x, want %x", got, want)
			}
		})
	}
}
