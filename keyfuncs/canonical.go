package keyfuncs

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

// canonical gives payloads that mean the same the same bytes, and others different
// ones. Members are sorted by name; those of one name stay in their order, because
// decoders differ in which they take.
func canonical(payload []byte) ([]byte, error) {
	v, err := read(payload)
	if err != nil {
		return nil, err
	}
	return spell(nil, v), nil
}

// object may hold several members of one name.
type object []member

type member struct {
	name  string
	value any
}

func (o object) sort() object {
	slices.SortStableFunc(o, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	return o
}

// read makes a tree of nil, bool, string, json.Number, []any and object. encoding/json
// checks the text and limits its depth, but its values would lose digits, halves of
// surrogate pairs, bytes that are no UTF-8 and members of the same name.
func read(payload []byte) (any, error) {
	if err := json.Unmarshal(payload, new(json.RawMessage)); err != nil {
		return nil, err
	}
	r := reader(payload)
	return r.value(), nil
}

// reader is what is left of a text that is known to be JSON.
type reader string

func (r *reader) value() any {
	switch r.next() {
	case '{':
		o := object{}
		for *r = (*r)[1:]; r.next() != '}'; {
			name := r.text()
			r.next()
			o = append(o, member{name, r.value()})
		}
		*r = (*r)[1:]
		return o.sort()
	case '[':
		list := []any{}
		for *r = (*r)[1:]; r.next() != ']'; {
			list = append(list, r.value())
		}
		*r = (*r)[1:]
		return list
	case '"':
		return r.text()
	}
	end := strings.IndexAny(string(*r), " \t\r\n,]}")
	if end < 0 {
		end = len(*r)
	}
	word := string((*r)[:end])
	*r = (*r)[end:]
	switch word {
	case "null":
		return nil
	case "true", "false":
		return word == "true"
	}
	return number(word)
}

func (r *reader) next() byte {
	*r = reader(strings.TrimLeft(string(*r), " \t\r\n,:"))
	return (*r)[0]
}

func (r *reader) text() string {
	end := 1
	for ; (*r)[end] != '"'; end++ {
		if (*r)[end] == '\\' {
			end++
		}
	}
	s := string((*r)[1:end])
	*r = (*r)[end+1:]
	return unescape(s)
}

// mark stands for the backslash of an escape that cannot be resolved: half of a
// surrogate pair is no character. UTF-8 has no such byte; where a string holds it all
// the same, it is doubled, so that nothing else looks like an escape.
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

// short resolves an escape of one letter.
func short(c byte) byte {
	if i := strings.IndexByte("bfnrt", c); i >= 0 {
		return "\b\f\n\r\t"[i]
	}
	return c
}

// unit is the code unit of the escape that s begins with, or -1.
func unit(s string) rune {
	if !strings.HasPrefix(s, `\u`) {
		return -1
	}
	n, _ := strconv.ParseUint(s[2:6], 16, 16) // the text is known to be JSON
	return rune(n)
}

// spell is the inverse of read.
func spell(b []byte, v any) []byte {
	switch v := v.(type) {
	case object:
		b = append(b, '{')
		for i, m := range v {
			b = spell(append(quote(separate(b, i), m.name), ':'), m.value)
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

// quote escapes as little as JSON allows: of \u only control characters and halves of
// surrogate pairs are left. A first half never stands before a second in a payload,
// where the two would have been read as one character.
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
