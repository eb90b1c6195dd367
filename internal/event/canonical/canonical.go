// Package canonical encodes JSON so that two texts have the same bytes exactly
// if they mean the same. Lock names are built from these bytes, so any change
// to the encoding loses the completed events of every name it affects.
package canonical

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON returns the canonical encoding of a JSON text. Members are sorted by
// name. Duplicate names keep their order, because decoders disagree about which
// one counts.
func JSON(text []byte) ([]byte, error) {
	v, err := Parse(text)
	if err != nil {
		return nil, err
	}
	return Text(v), nil
}

// Object is a JSON object. It may have duplicate names.
type Object []Member

// Member is one member of an Object.
type Member struct {
	Name  string
	Value any
}

// Sort sorts the members by name, in place, and returns the Object.
func (o Object) Sort() Object {
	slices.SortStableFunc(o, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	return o
}

// Parse decodes a JSON text into nil, bool, string, json.Number, []any and
// Object. Members are sorted, and numbers are encoded as by [Number].
func Parse(text []byte) (any, error) {
	v, err := ParseWritten(text)
	return normal(v), err
}

// ParseWritten does what [Parse] does, but leaves members and numbers as they
// are written: for those who encode JSON as others do.
//
// encoding/json validates the text and limits its depth, but cannot decode it:
// it would lose digits of numbers, unpaired surrogates, invalid UTF-8 and all
// but one of the members with the same name.
func ParseWritten(text []byte) (any, error) {
	if err := json.Unmarshal(text, new(json.RawMessage)); err != nil {
		return nil, err
	}
	p := parser(text)
	return p.value(), nil
}

// normal sorts the members of v and encodes its numbers, in place.
func normal(v any) any {
	switch v := v.(type) {
	case Object:
		for i := range v {
			v[i].Value = normal(v[i].Value)
		}
		return v.Sort()
	case []any:
		for i := range v {
			v[i] = normal(v[i])
		}
	case json.Number:
		return Number(v.String())
	}
	return v
}

// parser is the unread rest of a valid JSON text.
type parser string

func (p *parser) value() any {
	switch p.next() {
	case '{':
		o := Object{}
		for *p = (*p)[1:]; p.next() != '}'; {
			name := p.text()
			p.next()
			o = append(o, Member{name, p.value()})
		}
		*p = (*p)[1:]
		return o
	case '[':
		list := []any{}
		for *p = (*p)[1:]; p.next() != ']'; {
			list = append(list, p.value())
		}
		*p = (*p)[1:]
		return list
	case '"':
		return p.text()
	}
	end := strings.IndexAny(string(*p), " \t\r\n,]}")
	if end < 0 {
		end = len(*p)
	}
	word := string((*p)[:end])
	*p = (*p)[end:]
	switch word {
	case "null":
		return nil
	case "true", "false":
		return word == "true"
	}
	return json.Number(word)
}

func (p *parser) next() byte {
	*p = parser(strings.TrimLeft(string(*p), " \t\r\n,:"))
	return (*p)[0]
}

func (p *parser) text() string {
	end := 1
	for ; (*p)[end] != '"'; end++ {
		if (*p)[end] == '\\' {
			end++
		}
	}
	s := string((*p)[1:end])
	*p = (*p)[end+1:]
	return unescape(s)
}

// mark replaces the backslash of an escape that has no character: an unpaired
// surrogate. The byte never occurs in UTF-8. Where an invalid string contains
// it anyway, it is doubled, so that nothing else looks like an escape.
const mark = 0xFF

func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 && strings.IndexByte(s, mark) < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case mark:
			b = append(b, mark, mark)
		case '\\':
			i++
			if s[i] != 'u' {
				b = append(b, short(s[i]))
				continue
			}
			r := unit(s[i-1:])
			pair := utf16.DecodeRune(r, unit(s[i+5:]))
			switch {
			case pair != utf8.RuneError:
				b = utf8.AppendRune(b, pair)
				i += 6
			case utf16.IsSurrogate(r):
				b = fmt.Appendf(append(b, mark), "u%04x", r)
			default:
				b = utf8.AppendRune(b, r)
			}
			i += 4
		default:
			b = append(b, c)
		}
	}
	return string(b)
}

// UTF16 returns the code units of a string that [Parse] returned, unpaired
// surrogates included.
func UTF16(s string) []uint16 {
	units := make([]uint16, 0, len(s))
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if s[0] == mark && s[1] == 'u' {
			units, size = append(units, uint16(unit(`\`+s[1:]))), 6
		} else if units = utf16.AppendRune(units, r); s[0] == mark {
			size = 2
		}
		s = s[size:]
	}
	return units
}

// WithoutHalves returns a JSON text with each unpaired surrogate replaced by an
// ordinary character. encoding/json decodes unpaired surrogates as U+FFFD, so
// the two texts decode differently exactly where one was lost. It reports false
// if the text has none.
func WithoutHalves(text []byte) ([]byte, bool) {
	rest, found := string(text), false
	var b []byte
	for {
		i := strings.IndexByte(rest, '\\')
		if i < 0 {
			return append(b, rest...), found
		}
		length, r := 2, unit(rest[i:])
		if r >= 0 {
			length = 6
		}
		if utf16.IsSurrogate(r) && utf16.DecodeRune(r, unit(rest[i+6:])) != utf8.RuneError {
			length = 12
		} else if utf16.IsSurrogate(r) {
			found, rest = true, rest[:i]+`\ue000`+rest[i+6:]
		}
		b, rest = append(b, rest[:i+length]...), rest[i+length:]
	}
}

// short returns the character that a one-letter escape stands for.
func short(c byte) byte {
	if i := strings.IndexByte("bfnrt", c); i >= 0 {
		return "\b\f\n\r\t"[i]
	}
	return c
}

// unit returns the UTF-16 code unit of the \u escape at the start of s, or -1
// if there is none.
func unit(s string) rune {
	if !strings.HasPrefix(s, `\u`) {
		return -1
	}
	n, _ := strconv.ParseUint(s[2:6], 16, 16) // valid, because the text is JSON
	return rune(n)
}

// Text returns the canonical encoding of a value as [Parse] returns it, or of
// one made of the same types.
func Text(v any) []byte { return spell(nil, v) }

func spell(b []byte, v any) []byte {
	switch v := v.(type) {
	case Object:
		b = append(b, '{')
		for i, m := range v {
			b = spell(append(quote(separate(b, i), m.Name), ':'), m.Value)
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, e := range v {
			b = spell(separate(b, i), e)
		}
		return append(b, ']')
	case string:
		return quote(b, v)
	case nil:
		return append(b, "null"...)
	}
	return fmt.Append(b, v) // a bool or a number
}

func separate(b []byte, i int) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	return b
}

// quote escapes as little as JSON allows: besides quotes and backslashes, only
// control characters and unpaired surrogates, as \u. A high surrogate is never
// followed by a low one, because the parser would have decoded the pair.
func quote(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = fmt.Appendf(b, `\u%04x`, c)
		case c == mark && i+1 < len(s) && s[i+1] == mark:
			b = append(b, mark)
			i++
		case c == mark:
			b = append(b, '\\')
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
