package canonical_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"os"
	"reflect"
	"regexp"
	"testing"
	"unicode/utf8"

	"github.com/lambdalock/lambdalock/internal/event/canonical"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// exponent finds numbers that are too large to be written out.
var exponent = regexp.MustCompile(`[eE][+-]?0*[1-9][0-9]{3}`)

// decoded is what encoding/json makes of a payload, with the exact values of
// numbers.
func decoded(t *testing.T, payload []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(payload))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%q: %v", payload, err)
	}
	return rational(v)
}

func rational(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = rational(v[name])
		}
	case []any:
		for i := range v {
			v[i] = rational(v[i])
		}
	case json.Number:
		if r, ok := new(big.Rat).SetString(string(v)); ok {
			return r.RatString()
		}
	}
	return v
}

// tokens says how much there is in a payload, members of the same name
// included.
func tokens(payload []byte) (n int) {
	for d := json.NewDecoder(bytes.NewReader(payload)); ; n++ {
		d.UseNumber()
		if _, err := d.Token(); err != nil {
			return n
		}
	}
}

func spelled(t *testing.T, payload []byte) []byte {
	t.Helper()
	b, err := canonical.JSON(payload)
	if err != nil || !json.Valid(b) {
		t.Fatalf("%q: %q, %v", payload, b, err)
	}
	return b
}

func FuzzJSON(f *testing.F) { // F26, F28
	for _, name := range []string{"jmespath/testdata/payload-order.json", "jmespath/testdata/payload-nested.json", "testdata/sqs.json", "testdata/s3-put.json"} {
		b := expect.Value(os.ReadFile("../../../keyfuncs/" + name))(f)
		f.Add(b)
	}
	for _, p := range []string{`{"b":[1e3,-0.0,1e-999999999999999999999],"a":"\ud83d\udca1\ud800\u0000\/"}`, "\"\xff\xffud800\xff\\ud800\"", `{"a":1,"\u0061":{}}`} {
		f.Add([]byte(p))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		if _, err := canonical.JSON(payload); err != nil {
			if json.Valid(payload) {
				t.Errorf("%q: %v", payload, err)
			}
			return
		}
		once := spelled(t, payload)
		if again := spelled(t, payload); !bytes.Equal(once, again) {
			t.Errorf("%q, then %q", once, again)
		}
		if twice := spelled(t, once); !bytes.Equal(once, twice) {
			t.Errorf("%q becomes %q", once, twice)
		}
		if tokens(once) != tokens(payload) {
			t.Errorf("%q becomes %q, which holds more or less", payload, once)
		}
		unicode := utf8.Valid(once) && !bytes.ContainsRune(once, utf8.RuneError) && !bytes.Contains(once, []byte(`\ud`))
		if unicode && !exponent.Match(payload) && !exponent.Match(once) {
			if a, b := decoded(t, payload), decoded(t, once); !reflect.DeepEqual(a, b) {
				t.Errorf("%q means %v, %q means %v", payload, a, once, b)
			}
		}
		d := json.NewDecoder(bytes.NewReader(payload))
		d.UseNumber()
		var v any
		expect.Must(t, d.Decode(&v))
		other, err := json.MarshalIndent(v, " ", "\t")
		if err != nil || tokens(other) != tokens(payload) || bytes.ContainsRune(other, utf8.RuneError) || bytes.Contains(other, []byte(`\ufffd`)) {
			return // encoding/json lost something
		}
		if got := spelled(t, other); !bytes.Equal(got, once) {
			t.Errorf("%q and %q: %q, %q", payload, other, once, got)
		}
	})
}

// FuzzNumber has exact fractions as the measure.
func FuzzNumber(f *testing.F) { // F28
	for _, c := range [][2]string{{"1", "10e-1"}, {"-0", "0e5"}, {"1.50", "150E-2"}, {"12345678901234567890", "12345678901234567891"}, {"1e40", "0.1e41"}, {"1e-38", "0.001e-35"}, {"-1e39", "1e39"}} {
		f.Add(c[0], c[1])
	}
	number := regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a)+len(b) > 400 || !number.MatchString(a) || !number.MatchString(b) || exponent.MatchString(a) || exponent.MatchString(b) {
			return
		}
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		p, q := spelled(t, []byte(a)), spelled(t, []byte(b))
		if bytes.Equal(p, q) != (x.Cmp(y) == 0) {
			t.Errorf("%s and %s become %s and %s", a, b, p, q)
		}
		if z, ok := new(big.Rat).SetString(string(p)); !ok || z.Cmp(x) != 0 || len(p) > len(a)+40 {
			t.Errorf("%s becomes %s", a, p)
		}
	})
}
