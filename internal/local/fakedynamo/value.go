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

// item holds the attributes of an item. Stored items and their values never
// change, so that answers can be written without holding the lock.
type item map[string]value

// value is an attribute value as the protocol encodes it in JSON. The zero
// value stands for a missing attribute.
type value struct {
	S *string `json:",omitzero"`
	N *number `json:",omitzero"`
	B []byte  `json:",omitzero"`
	M item    `json:",omitzero"`
}

// kind returns the name of the member that is set, or all names if several are.
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

// check checks an item's values, which are nested in depth maps.
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

// compare returns the order of two values of the same kind, which is not M.
func (v value) compare(w value) int {
	switch v.kind() {
	case "S":
		return strings.Compare(*v.S, *w.S)
	case "N":
		return v.N.rat().Cmp(w.N.rat())
	}
	return bytes.Compare(v.B, w.B)
}

// size returns the size of the item by the service's rule.
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
