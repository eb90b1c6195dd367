package fakedynamo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// jsonReader reads the JSON of an UpdateItem request. Decoding with
// encoding/json would be most of the cost of answering one.
type jsonReader struct {
	data []byte
	at   int
}

// peek returns the next byte that is not white space, or 0 at the end.
func (r *jsonReader) peek() byte {
	for ; r.at < len(r.data); r.at++ {
		switch c := r.data[r.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// ended reports whether nothing but white space is left.
func (r *jsonReader) ended() bool {
	r.peek()
	return r.at == len(r.data)
}

// skip steps over c if it comes next.
func (r *jsonReader) skip(c byte) bool {
	if r.peek() != c {
		return false
	}
	r.at++
	return true
}

// skipWord steps over a literal such as null if it comes next.
func (r *jsonReader) skipWord(word string) bool {
	r.peek()
	if !bytes.HasPrefix(r.data[r.at:], []byte(word)) {
		return false
	}
	r.at += len(word)
	return true
}

func (r *jsonReader) unexpected(wanted string) error {
	if r.ended() {
		return refusalf("Unexpected end of input, where %s was expected", wanted)
	}
	return refusalf("Unexpected %q at byte %d, where %s was expected", r.data[r.at], r.at, wanted)
}

// object reads an object; member reads the value of the member of that name.
// A member that is null counts as absent unless nulls is set.
func (r *jsonReader) object(nulls bool, member func(name string) error) error {
	if !r.skip('{') {
		return r.unexpected("an object")
	}
	for first := true; !r.skip('}'); first = false {
		if !first && !r.skip(',') {
			return r.unexpected("a comma")
		}
		name, err := r.text()
		if err != nil {
			return err
		}
		if !r.skip(':') {
			return r.unexpected("a colon")
		}
		if !nulls && r.skipWord("null") {
			continue
		}
		if err := member(name); err != nil {
			return err
		}
	}
	return nil
}

// array reads an array; element reads an element of it.
func (r *jsonReader) array(element func() error) error {
	if !r.skip('[') {
		return r.unexpected("an array")
	}
	for first := true; !r.skip(']'); first = false {
		if !first && !r.skip(',') {
			return r.unexpected("a comma")
		}
		if err := element(); err != nil {
			return err
		}
	}
	return nil
}

// text reads a string. Only one with escapes or errors in it is left to
// encoding/json.
func (r *jsonReader) text() (string, error) {
	if r.peek() != '"' {
		return "", r.unexpected("a string")
	}
	plain, ascii := true, true
	for i := r.at + 1; i < len(r.data); i++ {
		switch c := r.data[i]; {
		case c == '\\':
			plain = false
			i++
		case c < ' ':
			plain = false
		case c >= utf8.RuneSelf:
			ascii = false
		case c == '"':
			raw := r.data[r.at : i+1]
			r.at = i + 1
			if inner := raw[1 : len(raw)-1]; plain && (ascii || utf8.Valid(inner)) {
				return string(inner), nil
			}
			var s string
			if err := json.Unmarshal(raw, &s); err != nil {
				return "", fmt.Errorf("reading a string: %w", err)
			}
			return s, nil
		}
	}
	return "", refusal("Unexpected end of input in a string")
}

// boolean reads true or false.
func (r *jsonReader) boolean() (bool, error) {
	if r.skipWord("true") {
		return true, nil
	}
	if r.skipWord("false") {
		return false, nil
	}
	return false, r.unexpected("true or false")
}
