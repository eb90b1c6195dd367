package fakedynamo

import (
	"maps"
	"math/big"
)

// update returns the item that the update expression makes of old, which is nil
// if there is no item. It changes nothing in old.
func (e *evaluator) update(old item) item {
	e.start("UpdateExpression", e.in.UpdateExpression, old)
	if old == nil {
		e.item = e.in.Key
	}
	it := maps.Clone(e.item) // all actions read the item as it was
	if e.skip("SET") {
		for more := true; more; more = e.skip(",") {
			name := e.target()
			e.expect("=")
			it[name] = e.operand()
		}
	}
	if e.skip("REMOVE") {
		for more := true; more; more = e.skip(",") {
			delete(it, e.target())
		}
	}
	e.expect(end)
	return it
}

// target reads the name of the attribute that an action changes.
func (e *evaluator) target() string {
	name := e.name()
	if e.changed[name] {
		e.fail("Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [%[1]s], path two: [%[1]s]", name)
	}
	e.changed[name] = true
	return name
}

// operand reads what a SET action assigns: a term, or the sum or difference of
// two.
func (e *evaluator) operand() value {
	v, given := e.term()
	operator := e.tokens[e.at]
	if operator != "+" && operator != "-" {
		return v
	}
	e.at++
	w, alsoGiven := e.term()
	if given && v.N == nil || alsoGiven && w.N == nil {
		wrong := v
		if !given || v.N != nil {
			wrong = w
		}
		e.fail("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", operator, wrong.kind())
	}
	if operator == "-" && w.N != nil {
		n := w.N.negative()
		w = value{N: &n}
	}
	return e.sum(v, w)
}

// term reads a :placeholder, an attribute of the item, or if_not_exists(name,
// :placeholder). It reports whether the request gives the value.
func (e *evaluator) term() (v value, given bool) {
	switch {
	case e.tokens[e.at][0] == ':':
		return e.value(), true
	case e.skip("if_not_exists"):
		e.expect("(")
		v = e.item[e.name()]
		e.expect(",")
		if other := e.value(); v.kind() == "" {
			v = other
		}
		e.expect(")")
	default:
		if v = e.path(); v.kind() == "" {
			e.differ("The provided expression refers to an attribute that does not exist in the item")
		}
	}
	return v, false
}

func (e *evaluator) sum(v, w value) value {
	if v.N == nil || w.N == nil {
		e.differ("An operand in the update expression has an incorrect data type")
		return value{}
	}
	n, err := newNumber(new(big.Rat).Add(v.N.rat(), w.N.rat()))
	if err != nil {
		e.differ("%v", err)
	}
	return value{N: &n}
}

// differ notes what does not fit between the update and the item, unless
// something is noted already.
func (e *evaluator) differ(format string, args ...any) {
	if e.mismatch == nil {
		e.mismatch = invalid(format, args...)
	}
}
