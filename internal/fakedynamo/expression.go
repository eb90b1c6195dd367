package fakedynamo

import (
	"slices"
	"strings"
	"sync"
)

// maxExpressionBytes is the service's limit on the length of an expression.
const maxExpressionBytes = 4096

// maxCached bounds a cache. Stores send a handful of different expressions, so
// the bound only keeps a client that builds them from data from filling memory.
const maxCached = 1024

// cache keeps the parsed form of every expression seen, because the same few
// come with every request and parsing is dearer than evaluating.
type cache[T any] struct {
	parse   func(string) (T, error)
	mu      sync.RWMutex
	results map[string]result[T]
}

type result[T any] struct {
	parsed T
	err    error
}

// get returns the parsed form of an expression.
func (c *cache[T]) get(text string) (T, error) {
	c.mu.RLock()
	r, ok := c.results[text]
	c.mu.RUnlock()
	if ok {
		return r.parsed, r.err
	}
	if r.err = checkLength(text); r.err == nil {
		r.parsed, r.err = c.parse(text)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.results == nil || len(c.results) >= maxCached {
		c.results = make(map[string]result[T])
	}
	c.results[text] = r
	return r.parsed, r.err
}

func checkLength(text string) error {
	if text == "" {
		return refusal("The expression can not be empty;")
	}
	if len(text) > maxExpressionBytes {
		return refusalf("Expression size has exceeded the maximum allowed size; expression size: %d", len(text))
	}
	return nil
}

// path is a document path: attribute names, literal or as #placeholders.
type path []string

// env is what a request gives for the placeholders of its expressions.
type env struct {
	names  map[string]string
	values map[string]*value
}

// name returns the attribute name that an element of a path stands for.
func (e env) name(element string) string {
	if element[0] == '#' {
		return e.names[element]
	}
	return element
}

// resolve returns the attribute names that a path stands for.
func (e env) resolve(p path) []string {
	names := make([]string, len(p))
	for i, element := range p {
		names[i] = e.name(element)
	}
	return names
}

// same reports whether two paths stand for the same names, or, if prefix is
// set, whether one of them leads to the other.
func (e env) same(p, q path, prefix bool) bool {
	if len(p) != len(q) && !prefix {
		return false
	}
	for i := range min(len(p), len(q)) {
		if e.name(p[i]) != e.name(q[i]) {
			return false
		}
	}
	return true
}

// show writes a path as the service's errors do.
func (e env) show(p path) string { return "[" + strings.Join(e.resolve(p), ", ") + "]" }

// lookup returns the value at a path, or nil.
func (e env) lookup(it item, p path) *value {
	v := it[e.name(p[0])]
	for _, element := range p[1:] {
		if v == nil {
			return nil
		}
		v = v.m[e.name(element)] // nil for everything that is not a map
	}
	return v
}

// definedNames checks that the #placeholders are defined.
func (e env) definedNames(elements []string) error {
	for _, element := range elements {
		if _, ok := e.names[element]; !ok && element[0] == '#' {
			return refusalf("An expression attribute name used in the document path is not defined; attribute name: %s", element)
		}
	}
	return nil
}

// definedValues checks that the :placeholders are defined.
func (e env) definedValues(placeholders []string) error {
	for _, name := range placeholders {
		if e.values[name] == nil {
			return refusalf("An expression attribute value used in expression is not defined; attribute value: %s", name)
		}
	}
	return nil
}

// uses is the placeholders that an expression uses, in order.
type uses struct{ names, values []string }

// unused returns the keys of defined that none of the expressions uses, as the
// service's error lists them, or "".
func unused[T any](defined map[string]T, used ...[]string) string {
	var rest []string
	for name := range defined {
		if !slices.ContainsFunc(used, func(u []string) bool { return slices.Contains(u, name) }) {
			rest = append(rest, name)
		}
	}
	if rest == nil {
		return ""
	}
	slices.Sort(rest)
	return "{" + strings.Join(rest, ", ") + "}"
}

// operandKind tells the forms of an operand apart.
type operandKind int

const (
	operandPath operandKind = iota
	operandValue
	operandCall
)

// operand is a path, a :placeholder or a call of if_not_exists.
type operand struct {
	kind  operandKind
	path  path
	value string    // operandValue: the placeholder
	args  []operand // operandCall
}

// eval returns the operand's value, or nil if it refers to a missing attribute.
func (o operand) eval(e env, it item) *value {
	switch o.kind {
	case operandValue:
		return e.values[o.value]
	case operandCall:
		if v := e.lookup(it, o.args[0].path); v != nil {
			return v
		}
		return o.args[1].eval(e, it)
	}
	return e.lookup(it, o.path)
}

// parsePath reads a document path.
func (p *parser) parsePath() (path, error) {
	var elements path
	for {
		t := p.peek()
		switch t.kind {
		case tokenName:
			if reserved(t.text) {
				p.note("Attribute name is a reserved keyword; reserved keyword: %s", t.text)
			}
		case tokenHash:
			p.uses.names = append(p.uses.names, t.text)
		default:
			return nil, p.syntaxError()
		}
		elements = append(elements, p.take().text)
		if !p.skip(".") {
			return elements, nil
		}
	}
}

// parseOperand reads an operand. The caller says which functions it allows by
// noting a problem with the others.
func (p *parser) parseOperand(checkFunction func(name string)) (operand, error) {
	t := p.peek()
	switch {
	case t.kind == tokenColon:
		p.take()
		p.uses.values = append(p.uses.values, t.text)
		return operand{kind: operandValue, value: t.text}, nil
	case t.kind == tokenName && p.tokens[p.at+1].text == "(":
		checkFunction(t.text)
		args, err := p.parseCall(checkFunction)
		return operand{kind: operandCall, args: args}, err
	}
	elements, err := p.parsePath()
	return operand{kind: operandPath, path: elements}, err
}

// parseCall reads a function's name and its operands in parentheses.
func (p *parser) parseCall(checkFunction func(name string)) ([]operand, error) {
	p.take() // the name
	p.take() // the parenthesis
	var args []operand
	for {
		arg, err := p.parseOperand(checkFunction)
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
		if p.skip(")") {
			return args, nil
		}
		if !p.skip(",") {
			return nil, p.syntaxError()
		}
	}
}
