package jmespath

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jmespath/go-jmespath"

	"github.com/lambdalock/lambdalock/internal/event/canonical"
)

// The library has not had a release since 2020, and this file works around what
// is wrong with it. Its community fork (v1.1.1, 2023) is not better. It repairs
// two of the panics, keeps the other faults, and adds some: find_first panics,
// pad_left allocates as much memory as the payload asks for, items lists the
// members of an object, and '\\' means another string, so that names would
// change.

// unordered matches, in the printed syntax tree, what lists the members of an
// object in the random order of Go's maps. The library exports no other form of
// the tree. A literal is printed as one quoted line and cannot match.
var unordered = regexp.MustCompile(`(?m)^ *AST(ValueProjection \{|FunctionExpression \{\n *value: "(keys|values)")$`)

// called matches the name of a function in the printed syntax tree.
var called = regexp.MustCompile(`(?m)^ *ASTFunctionExpression \{\n *value: "(\w+)"$`)

func check(path string) (err error) {
	defer recovered(&err)
	if !utf8.ValidString(path) {
		return errors.New("is not UTF-8")
	}
	parsed, err := jmespath.NewParser().Parse(path)
	if err != nil {
		return err
	}
	tree := parsed.String()
	if unordered.MatchString(tree) {
		return errors.New("the members of an object have no order, so *, keys and values cannot make a key; name the members you mean")
	}
	for _, function := range called.FindAllStringSubmatch(tree, -1) {
		// Without arguments it fails too, but for another reason if it exists.
		if _, err := jmespath.Search(function[1]+"()", nil); err != nil && strings.Contains(err.Error(), "unknown function") {
			return err
		}
	}
	return nil
}

// search parses the path for every event. A compiled expression must not be
// shared, because sort_by sorts the literals in it in place.
func search(path string, doc any) (found any, err error) {
	defer recovered(&err)
	found, err = jmespath.Search(path, toLibrary(doc))
	if err == nil {
		return fromLibrary(found)
	}
	// The text of this error quotes the argument, which may be personal data.
	if i := strings.LastIndex(err.Error(), ", expected: "); i >= 0 {
		err = errors.New("an argument of a function has the wrong type" + err.Error()[i:])
	}
	return nil, err
}

// recovered turns a panic of the library into an error. It panics in contains
// and merge of objects, in slices with a huge step, for an identifier that
// U+0080 follows and for a literal that is called as a function.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%v", r)
	}
}

// toLibrary returns a tree of package canonical as the library expects it. Of
// several members of one name the last counts, as in encoding/json. The library
// computes with float64: a number that float64 cannot represent exactly stays a
// json.Number, which the library passes through unchanged.
func toLibrary(v any) any {
	switch v := v.(type) {
	case canonical.Object:
		m := make(map[string]any, len(v))
		for _, e := range v {
			m[e.Name] = toLibrary(e.Value)
		}
		return m
	case []any:
		for i, e := range v {
			v[i] = toLibrary(e)
		}
	case json.Number:
		if f, err := v.Float64(); err == nil && shortest(f) == v {
			return f
		}
	}
	return v
}

// fromLibrary is the inverse of toLibrary. It copies lists, because a result
// may contain the same list more than once.
func fromLibrary(v any) (_ any, err error) {
	switch v := v.(type) {
	case map[string]any:
		o := make(canonical.Object, 0, len(v))
		for name, e := range v {
			if e, err = fromLibrary(e); err != nil {
				return nil, err
			}
			o = append(o, canonical.Member{Name: name, Value: e})
		}
		return o.Sort(), nil
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			if list[i], err = fromLibrary(e); err != nil {
				return nil, err
			}
		}
		return list, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, errors.New("the result is not a finite number")
		}
		return shortest(v), nil
	case nil, bool, string, json.Number:
		return v, nil
	}
	return nil, errors.New("the result contains an expression instead of its value")
}

func shortest(f float64) json.Number {
	return canonical.Number(strconv.FormatFloat(f, 'g', -1, 64))
}
