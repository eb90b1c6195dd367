// Package shape finds the types of aws-lambda-go in the types that users make
// of them: pointers, defined types and structs that embed them.
package shape

import (
	"reflect"
	"slices"
)

// Place is where a value of a type has one of the known types.
type Place struct {
	Type   reflect.Type // the known one
	fields []int        // the embedded fields that lead to it
}

// Find returns the place of the known type that is nearest in t: t itself, what
// it points to, the type that it is defined as, or one that it embeds, as
// encoding/json sees it. It reports false if there is none.
func Find(t reflect.Type, known []reflect.Type) (Place, bool) {
	level := []Place{{Type: t}}
	seen := map[reflect.Type]bool{}
	for len(level) > 0 {
		var next []Place
		for _, p := range level {
			t := deref(p.Type)
			if to := knownAs(t, known); to != nil {
				return Place{to, p.fields}, true
			}
			if t.Kind() != reflect.Struct || seen[t] { // a type may embed a pointer to itself
				continue
			}
			seen[t] = true
			for i := range t.NumField() {
				if f := t.Field(i); f.Anonymous && f.Tag.Get("json") == "" {
					next = append(next, Place{f.Type, append(slices.Clone(p.fields), i)})
				}
			}
		}
		level = next
	}
	return Place{}, false
}

// knownAs returns the known type that t is, or is defined as.
func knownAs(t reflect.Type, known []reflect.Type) reflect.Type {
	if slices.Contains(known, t) {
		return t
	}
	for _, k := range known {
		if t.Kind() == reflect.Struct && t.ConvertibleTo(k) {
			return k
		}
	}
	return nil
}

// In returns what v, whose type was given to Find, has at the place. It reports
// false if a pointer on the way is nil.
func (p Place) In(v reflect.Value) (any, bool) {
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
	found := reflect.New(p.Type).Elem()
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
