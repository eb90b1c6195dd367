package fakedynamo

import (
	"encoding/base64"
	"strings"
)

// maxItemBytes is the service's limit on the size of an item.
const maxItemBytes = 400 << 10

// item is the attributes of a stored item. Items and values are never changed
// once stored, so that answers can be written without holding the lock.
type item map[string]*value

// value is one attribute value. Its kind is the type's name in the protocol.
type value struct {
	kind string
	text string // S: the string; B: the bytes; N: the number as it is returned
	num  decimal
	flag bool
	m    map[string]*value
	l    []*value
}

// decode checks a value and brings it into the form in which it is stored.
func (w *wireValue) decode() (*value, error) {
	switch n := w.members(); {
	case n == 0:
		return nil, refusal("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
	case n > 1:
		return nil, refusal("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
	case w.S != nil:
		return &value{kind: "S", text: *w.S}, nil
	case w.N != nil:
		return decodeNumber(*w.N)
	case w.B != nil:
		return decodeBinary(*w.B)
	case w.BOOL != nil:
		return &value{kind: "BOOL", flag: *w.BOOL}, nil
	case w.NULL != nil:
		return decodeNull(*w.NULL)
	case w.M != nil:
		return decodeMap(w.M)
	}
	return decodeList(w.L)
}

// members counts the members that are set, of which there must be one.
func (w *wireValue) members() int {
	if w == nil {
		return 0
	}
	n := 0
	for _, set := range [...]bool{w.S != nil, w.N != nil, w.B != nil, w.BOOL != nil, w.NULL != nil, w.M != nil, w.L != nil} {
		if set {
			n++
		}
	}
	return n
}

func decodeNumber(text string) (*value, error) {
	d, err := parseDecimal(text)
	if err != nil {
		return nil, err
	}
	return number(d), nil
}

func number(d decimal) *value { return &value{kind: "N", text: d.String(), num: d} }

func decodeBinary(text string) (*value, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, refusal("Invalid Base64 in a binary value")
	}
	return &value{kind: "B", text: string(raw)}, nil
}

func decodeNull(set bool) (*value, error) {
	if !set {
		return nil, refusal("One or more parameter values were invalid: Null attribute value types must have the value of true")
	}
	return &value{kind: "NULL"}, nil
}

func decodeMap(in map[string]*wireValue) (*value, error) {
	m := make(map[string]*value, len(in))
	for name, w := range in {
		if name == "" {
			return nil, refusal("Empty attribute name")
		}
		v, err := w.decode()
		if err != nil {
			return nil, err
		}
		m[name] = v
	}
	return &value{kind: "M", m: m}, nil
}

func decodeList(in []*wireValue) (*value, error) {
	l := make([]*value, len(in))
	for i, w := range in {
		v, err := w.decode()
		if err != nil {
			return nil, err
		}
		l[i] = v
	}
	return &value{kind: "L", l: l}, nil
}

// ordered reports whether values of a kind can be compared with < and >.
func ordered(kind string) bool { return kind == "S" || kind == "N" || kind == "B" }

// compare orders two values of the same ordered kind.
func (v *value) compare(w *value) int {
	if v.kind == "N" {
		return v.num.compare(w.num)
	}
	return strings.Compare(v.text, w.text)
}

// equal reports whether two values have the same type and content. A missing
// value equals nothing, not even another missing one.
func (v *value) equal(w *value) bool {
	if v == nil || w == nil || v.kind != w.kind || v.text != w.text || v.flag != w.flag || len(v.m) != len(w.m) || len(v.l) != len(w.l) {
		return false
	}
	for name, a := range v.m {
		if !a.equal(w.m[name]) {
			return false
		}
	}
	for i, a := range v.l {
		if !a.equal(w.l[i]) {
			return false
		}
	}
	return true
}

// size is the size of the item by the service's rule.
func (it item) size() int {
	size := 0
	for name, v := range it {
		size += len(name) + v.size()
	}
	return size
}

func (v *value) size() int {
	switch v.kind {
	case "N":
		return v.num.size()
	case "BOOL", "NULL":
		return 1
	case "M":
		return 3 + len(v.m) + item(v.m).size()
	case "L":
		size := 3 + len(v.l)
		for _, a := range v.l {
			size += a.size()
		}
		return size
	}
	return len(v.text)
}
