package fakedynamo

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxExpressionBytes is the service's limit on the length of an expression.
const maxExpressionBytes = 4096

// end follows the last token. No token equals it.
const end = "<EOF>"

// evaluator evaluates the expressions of a request while it reads them. After
// the first error it moves to the end of the expression and reads nothing more.
type evaluator struct {
	in       *input
	used     map[string]bool // the placeholders
	changed  map[string]bool // the attributes that the update changes
	mismatch error           // between the update and the item
	err      error           // the first one, in either expression

	// The current expression:
	member string // of the request
	item   item   // that it is evaluated for
	tokens []string
	at     int
	group  span // of the last parentheses
}

// span is a part of the tokens: where it starts, and what follows it.
type span struct{ from, to int }

func newEvaluator(in *input) *evaluator {
	return &evaluator{in: in, used: make(map[string]bool), changed: make(map[string]bool)}
}

// start begins an expression.
func (e *evaluator) start(member, text string, it item) {
	e.member, e.item, e.at, e.group = member, it, 0, span{}
	e.tokens = append(tokensOf(text), end)
	if len(text) > maxExpressionBytes {
		e.fail("Expression size has exceeded the maximum allowed size; expression size: %d", len(text))
	}
	if len(e.tokens) == 1 {
		e.fail("The expression can not be empty;")
	}
}

// tokensOf returns the words, #placeholders, :placeholders, operators and other
// characters of an expression. The evaluator refuses what does not belong in
// one.
func tokensOf(text string) []string {
	var tokens []string
	for text = skipSpace(text); text != ""; text = skipSpace(text) {
		_, n := utf8.DecodeRuneInString(text)
		switch c := text[0]; {
		case c == '#', c == ':', isWord(c) && (c < '0' || c > '9') && c != '_':
			for n < len(text) && isWord(text[n]) {
				n++
			}
		case strings.HasPrefix(text, "<="), strings.HasPrefix(text, "<>"), strings.HasPrefix(text, ">="):
			n = 2
		}
		tokens, text = append(tokens, text[:n]), text[n:]
	}
	return tokens
}

func skipSpace(text string) string { return strings.TrimLeft(text, " \t\n\f\r") }

// isWord reports whether c may be in a word, which begins with a letter.
func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}

// fail notes an error, unless there is one already, and skips the rest.
func (e *evaluator) fail(format string, args ...any) {
	if e.err == nil {
		e.err = invalid("Invalid %s: %s", e.member, fmt.Sprintf(format, args...))
	}
	e.at = len(e.tokens) - 1
}

// unsupported refuses the current token, whether the service would accept it or
// call it a syntax error.
func (e *evaluator) unsupported() {
	e.fail("fakedynamo does not support %q after %q", e.tokens[e.at], strings.Join(e.tokens[:e.at], " "))
}

// skip steps over that token and reports true, if it is the current one.
func (e *evaluator) skip(token string) bool {
	if e.tokens[e.at] != token {
		return false
	}
	e.at++
	return true
}

// expect steps over that token, which must be the current one.
func (e *evaluator) expect(token string) {
	if !e.skip(token) {
		e.unsupported()
	}
}

// name reads an attribute name, bare or as a #placeholder.
func (e *evaluator) name() string {
	t := e.tokens[e.at]
	letter := t[0] | 0x20 // in lower case
	switch name := e.in.ExpressionAttributeNames[t]; {
	case t[0] == '#' && len(t) > 1:
		e.at++
		e.used[t] = true
		if name == "" {
			e.fail("An expression attribute name used in the document path is not defined; attribute name: %s", t)
		}
		return name
	case letter < 'a', letter > 'z', t == "NOT", e.tokens[e.at+1] == "(": // the last is a function
		e.unsupported()
	case reserved(t):
		e.fail("Attribute name is a reserved keyword; reserved keyword: %s", t)
	default:
		e.at++
	}
	return t
}

// path reads a document path and returns the value it leads to, if any.
func (e *evaluator) path() value {
	v := e.item[e.name()]
	for e.skip(".") {
		v = v.M[e.name()] // only a map has members
	}
	return v
}

// value reads a :placeholder and returns its value.
func (e *evaluator) value() value {
	t := e.tokens[e.at]
	if t[0] != ':' || len(t) == 1 {
		e.unsupported()
		return value{}
	}
	e.at++
	e.used[t] = true
	v, ok := e.in.ExpressionAttributeValues[t]
	if !ok {
		e.fail("An expression attribute value used in expression is not defined; attribute value: %s", t)
	}
	return v
}

// check returns what is wrong with the expressions and their placeholders.
func (e *evaluator) check() error {
	return cmp.Or(e.err,
		e.in.ExpressionAttributeValues.check(0),
		checkUse("ExpressionAttributeNames", e.in.ExpressionAttributeNames, e.used),
		checkUse("ExpressionAttributeValues", e.in.ExpressionAttributeValues, e.used))
}

// checkUse checks that all placeholders are used, which a name without # or :
// cannot be.
func checkUse[V any](member string, defined map[string]V, used map[string]bool) error {
	if defined != nil && len(defined) == 0 {
		return invalid("%s must not be empty", member)
	}
	for name := range defined {
		if !used[name] {
			return invalid("Value provided in %s unused in expressions: keys: {%s}", member, name)
		}
	}
	return nil
}
