package fakedynamo

import (
	"bytes"
	"strings"
)

// The service's limits on items.
const (
	maxItemBytes = 400 << 10
	maxNesting   = 31 // maps within each other
)

// item is the attributes of a stored item. Items and values are never changed
// once stored, so that answers can be written without holding the lock.
type item map[string]value

// value is one attribute value in the form of the protocol's JSON. The zero
// value stands for a missing attribute.
type value struct {
	S *string `json:",omitzero"`
	N *number `json:",omitzero"`
	B []byte  `json:",omitzero"`
	M item    `json:",omitzero"`
}

// kind returns the name of the member that is set, or of all of them.
func (v value) kind() string {
	kind := ""
	if v.S != nil {
		kind += "S"
	}
	if v.N != nil {
		kind += "N"
	}
	if v.B != nil {
		kind += "B"
	}
	if v.M != nil {
		kind += "M"
	}
	return kind
}

// strings returns the attributes that are strings.
func (it item) strings() map[string]string {
	all := map[string]string{}
	for name, v := range it {
		if v.S != nil {
			all[name] = *v.S
		}
	}
	return all
}

// check checks values that lie within depth maps.
func (it item) check(depth int) error {
	for name, v := range it {
		switch {
		case len(v.kind()) != 1:
			return invalid("Supplied AttributeValue must contain exactly one of the supported datatypes: %s", name)
		case name == "":
			return invalid("Empty attribute name")
		case depth > maxNesting:
			return invalid("Nesting Levels have exceeded supported limits")
		}
		if err := v.M.check(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

// compare orders two values of the same kind, which is not M.
func (v value) compare(w value) int {
	switch v.kind() {
	case "S":
		return strings.Compare(*v.S, *w.S)
	case "N":
		return v.N.rat().Cmp(w.N.rat())
	}
	return bytes.Compare(v.B, w.B)
}

// size is the size of the item by the service's rule.
func (it item) size() int {
	size := 0
	for name, v := range it {
		size += len(name)
		switch v.kind() {
		case "S":
			size += len(*v.S)
		case "N":
			size += v.N.size()
		case "M":
			size += 3 + len(v.M) + v.M.size()
		}
		size += len(v.B)
	}
	return size
}
