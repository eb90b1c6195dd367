package fakedynamo

import (
	"reflect"
	"slices"
	"strings"
)

// condition reports whether an item, nil if there is none, fulfils the
// expression in that member of the request, if there is one. It reads the whole
// expression, whatever the first part gives, so that errors do not depend on
// the item.
func (e *evaluator) condition(member string, expression *string, it item) bool {
	if expression == nil {
		return true
	}
	e.start(member, *expression, it)
	fulfilled := e.or()
	e.expect(end)
	return fulfilled
}

func (e *evaluator) or() bool {
	fulfilled := e.and()
	for e.skip("OR") {
		right := e.and()
		fulfilled = fulfilled || right
	}
	return fulfilled
}

func (e *evaluator) and() bool {
	fulfilled := e.predicate()
	for e.skip("AND") {
		right := e.predicate()
		fulfilled = fulfilled && right
	}
	return fulfilled
}

func (e *evaluator) predicate() bool {
	switch {
	case e.skip("("):
		return e.parentheses()
	case e.skip("attribute_exists"):
		return e.exists()
	case e.skip("attribute_not_exists"):
		return !e.exists()
	case e.skip("begins_with"):
		return e.beginsWith()
	}
	return e.comparison()
}

// parentheses reads the rest of a condition in parentheses. The service refuses
// parentheses directly around parentheses.
func (e *evaluator) parentheses() bool {
	start := e.at
	fulfilled := e.or()
	if e.group == (span{start, e.at}) {
		e.fail("The expression has redundant parentheses;")
	}
	e.expect(")")
	e.group = span{start - 1, e.at}
	return fulfilled
}

func (e *evaluator) exists() bool {
	e.expect("(")
	v := e.path()
	e.expect(")")
	return v.kind() != ""
}

// beginsWith reads the arguments of the function. The service takes a string or
// bytes as the beginning; fakedynamo takes a string only.
func (e *evaluator) beginsWith() bool {
	e.expect("(")
	v := e.path()
	e.expect(",")
	start := e.value()
	e.expect(")")
	if start.kind() != "" && start.S == nil {
		e.fail("Incorrect operand type for operator or function; operator or function: begins_with, operand type: %s", start.kind())
	}
	return v.S != nil && start.S != nil && strings.HasPrefix(*v.S, *start.S)
}

// orders holds what each operator takes as the order of two values.
var orders = map[string][]int{"=": {0}, "<>": {-1, 1}, "<": {-1}, "<=": {-1, 0}, ">": {1}, ">=": {0, 1}}

// comparison reads and compares as the service does: a missing attribute is
// unequal to everything, but neither before nor after anything, and an order
// exists only between values of the same type.
func (e *evaluator) comparison() bool {
	left := e.path()
	operator := e.tokens[e.at]
	if orders[operator] == nil {
		e.unsupported()
		return false
	}
	e.at++
	right := e.value()
	if operator == "=" || operator == "<>" {
		return reflect.DeepEqual(left, right) == (operator == "=")
	}
	if right.M != nil {
		e.fail("Incorrect operand type for operator or function; operator or function: %s, operand type: M", operator)
	}
	return left.kind() == right.kind() && slices.Contains(orders[operator], left.compare(right))
}
