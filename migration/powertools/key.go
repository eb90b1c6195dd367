package powertools

import (
	"cmp"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/lambdalock/lambdalock/internal/event/canonical"
	"github.com/lambdalock/lambdalock/lock"
)

// ID returns the id of the old record of an event, or "" if the old function
// kept none. Check it in a test with an event whose record you have, because
// nothing else reports a wrong Prefix or Part.
func (t Table[E]) ID(event E) (string, error) {
	part, err := parse("Part", t.Part(event))
	if err != nil || t.Language.missing(part) {
		return "", err
	}
	return t.Prefix + "#" + t.digest(part), nil
}

// parse returns a part as package canonical parses it.
func parse(field string, part any) (any, error) {
	text, err := json.Marshal(part)
	if err != nil {
		return nil, &lock.NoKeyError{Field: "powertools.Table." + field, Reason: "returned what is not JSON", Err: err}
	}
	return canonical.ParseWritten(text)
}

// missing reports whether the old function ran without idempotency for want of
// a key. Older versions for Python took an object for a key although all its
// values are null, and answered for one event with the result of another: their
// record is not for us.
//
//   - https://github.com/aws-powertools/powertools-lambda-python/blob/v3.37.0/aws_lambda_powertools/utilities/idempotency/persistence/base.py
//   - https://github.com/aws-powertools/powertools-lambda-typescript/blob/v2.35.0/packages/idempotency/src/IdempotencyHandler.ts
func (l Language) missing(part any) bool {
	if l == TypeScript {
		return part == nil
	}
	switch v := part.(type) {
	case canonical.Object:
		return !slices.ContainsFunc(python.members(v), func(m canonical.Member) bool { return m.Value != nil })
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return e != nil })
	}
	return part == nil || part == ""
}

func (t *Table[E]) digest(part any) string {
	h := md5.New()
	if t.Hash != nil {
		h = t.Hash()
	}
	if t.Language == TypeScript {
		h.Write(javaScript.encode(nil, part))
		return base64.StdEncoding.EncodeToString(h.Sum(nil))
	}
	h.Write(python.encode(nil, part))
	return hex.EncodeToString(h.Sum(nil))
}

// encoding is the JSON of one language.
type encoding struct {
	comma, colon string
	ascii        bool // all other characters are escaped
	number       func(string) string
	sort         func(canonical.Object) canonical.Object
}

var (
	// python is json.dumps with sort_keys.
	python = encoding{", ", ": ", true, pythonNumber, canonical.Object.Sort}
	// javaScript is JSON.stringify of what deepSort returns:
	// https://github.com/aws-powertools/powertools-lambda-typescript/blob/v2.35.0/packages/idempotency/src/deepSort.ts
	javaScript = encoding{",", ":", false, javaScriptNumber, deepSort}
)

// encode appends a value as package canonical parses it.
func (l *encoding) encode(b []byte, v any) []byte {
	switch v := v.(type) {
	case canonical.Object:
		b = append(b, '{')
		for i, m := range l.members(v) {
			b = l.encode(append(l.quote(l.separate(b, i), m.Name), l.colon...), m.Value)
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, e := range v {
			b = l.encode(l.separate(b, i), e)
		}
		return append(b, ']')
	case string:
		return l.quote(b, v)
	case json.Number:
		return append(b, l.number(v.String())...)
	case nil:
		return append(b, "null"...)
	}
	return fmt.Append(b, v) // a bool
}

func (l *encoding) separate(b []byte, i int) []byte {
	if i > 0 {
		b = append(b, l.comma...)
	}
	return b
}

// quote escapes control characters, unpaired surrogates and, in ASCII, all that
// is not printable.
func (l *encoding) quote(b []byte, s string) []byte {
	b = append(b, '"')
	units := append(canonical.UTF16(s), 0)
	for i := 0; i < len(units)-1; i++ {
		u := rune(units[i])
		pair := utf16.DecodeRune(u, rune(units[i+1]))
		switch short := strings.IndexRune("\"\\\b\f\n\r\t", u); {
		case short >= 0:
			b = append(b, '\\', `"\bfnrt`[short])
		case pair != utf8.RuneError && !l.ascii:
			b = utf8.AppendRune(b, pair)
			i++
		case u < ' ' || utf16.IsSurrogate(u) || l.ascii && u > '~':
			b = fmt.Appendf(b, `\u%04x`, u)
		default:
			b = utf8.AppendRune(b, u)
		}
	}
	return append(b, '"')
}

// members returns the members in the order of the language. Of several with one
// name the last one counts, at the place of the first.
func (l *encoding) members(o canonical.Object) canonical.Object {
	var last canonical.Object
	at := map[string]int{}
	for _, m := range o {
		if i, ok := at[m.Name]; ok {
			last[i].Value = m.Value
			continue
		}
		at[m.Name] = len(last)
		last = append(last, m)
	}
	return l.sort(last)
}

// deepSort sorts members by name in lower case, after array indices, which
// every JavaScript object has first and by number. An assignment to __proto__
// makes no member.
func deepSort(o canonical.Object) canonical.Object {
	o = slices.DeleteFunc(o, func(m canonical.Member) bool { return m.Name == "__proto__" })
	lower := func(m canonical.Member) []uint16 {
		return canonical.UTF16(strings.ToLower(strings.ReplaceAll(m.Name, "İ", "i̇"))) // as JavaScript does
	}
	slices.SortStableFunc(o, func(a, b canonical.Member) int {
		return cmp.Or(cmp.Compare(arrayIndex(a.Name), arrayIndex(b.Name)), slices.Compare(lower(a), lower(b)))
	})
	return o
}

// arrayIndex returns the index that a name is, or more than the largest.
func arrayIndex(name string) uint64 {
	const none = math.MaxUint32
	if n, err := strconv.ParseUint(name, 10, 32); err == nil && strconv.FormatUint(n, 10) == name {
		return n
	}
	return none
}

// pythonNumber writes a number with a point or an exponent as repr writes a
// float, and any other with all its digits.
func pythonNumber(text string) string {
	switch {
	case text == "-0":
		return "0"
	case !strings.ContainsAny(text, ".eE"):
		return text
	}
	f, _ := strconv.ParseFloat(text, 64) // infinite if out of range
	short, plain := strconv.FormatFloat(f, 'e', -1, 64), strconv.FormatFloat(f, 'f', -1, 64)
	_, exponent, _ := strings.Cut(short, "e")
	e, _ := strconv.Atoi(exponent)
	switch {
	case math.IsInf(f, 0):
		return strings.TrimPrefix(plain, "+") + "inity"
	case e < -4 || e >= 16:
		return short
	case !strings.Contains(plain, "."):
		plain += ".0"
	}
	return plain
}

// javaScriptNumber writes a number as a float64. encoding/json does that as
// JavaScript does, except for -0 and what is out of range.
func javaScriptNumber(text string) string {
	f, _ := strconv.ParseFloat(text, 64) // infinite if out of range
	switch {
	case f == 0:
		return "0"
	case math.IsInf(f, 0):
		return "null"
	}
	b, _ := json.Marshal(f) // finite
	return string(b)
}
