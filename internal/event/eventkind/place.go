package eventkind

import (
	"reflect"
	"slices"
	"strings"
)

// place is where a value of a type has one of the known types.
type place struct {
	httpType       // the known one
	fields   []int // the embedded fields that lead to it
}

// find returns the place of the known type that is nearest in t: t itself, what
// it points to, the type that it is defined as, or one that it embeds, as
// encoding/json sees it. It returns a place without a gateway if there is none.
func find(t reflect.Type, known []httpType) place {
	level := []place{{httpType: httpType{of: t}}}
	seen := map[reflect.Type]bool{}
	for len(level) > 0 {
		var next []place
		for _, p := range level {
			t := deref(p.of)
			if to := knownAs(t, known); to.gateway != NoGateway {
				return place{to, p.fields}
			}
			if t.Kind() != reflect.Struct || seen[t] { // a type may embed a pointer to itself
				continue
			}
			seen[t] = true
			for i := range t.NumField() {
				f := t.Field(i)
				if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.Anonymous && name == "" {
					next = append(next, place{httpType{of: f.Type}, append(slices.Clone(p.fields), i)})
				}
			}
		}
		level = next
	}
	return place{}
}

// knownAs returns the known type that t is, or is defined as.
func knownAs(t reflect.Type, known []httpType) httpType {
	i := slices.IndexFunc(known, func(k httpType) bool { return t == k.of })
	if i < 0 {
		i = slices.IndexFunc(known, func(k httpType) bool { return isDefinedAs(t, k.of) })
	}
	if i < 0 {
		return httpType{}
	}
	return known[i]
}

// isDefinedAs reports whether t is a known type of events, or defined as one.
func isDefinedAs(t, known reflect.Type) bool {
	return t == known || t.Kind() == reflect.Struct && t.ConvertibleTo(known)
}

// embeds reports whether t is such a type, points to one or embeds one. A type
// may embed a pointer to itself.
func embeds(t reflect.Type, is func(reflect.Type) bool, seen map[reflect.Type]bool) bool {
	t = deref(t)
	if is(t) {
		return true
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return false
	}
	seen[t] = true
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous && embeds(f.Type, is, seen) {
			return true
		}
	}
	return false
}

// in returns what v, whose type was given to find, has at the place. It reports
// false if a pointer on the way is nil.
func (p place) in(v reflect.Value) (any, bool) {
	v, ok := pointed(v)
	for _, i := range p.fields {
		if !ok {
			return nil, false
		}
		v, ok = pointed(v.Field(i))
	}
	if !ok {
		return nil, false
	}
	found := reflect.New(p.of).Elem()
	for i := range v.NumField() { // one by one, because the embedded type's own name may be unexported
		found.Field(i).Set(v.Field(i))
	}
	return found.Interface(), true
}

func pointed(v reflect.Value) (reflect.Value, bool) {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return v, false
		}
		v = v.Elem()
	}
	return v, v.IsValid()
}

func deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
