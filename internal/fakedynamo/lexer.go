package fakedynamo

import (
	"strings"
	"unicode/utf8"
)

// tokenKind classifies the tokens of the two expression languages.
type tokenKind int

const (
	tokenEnd     tokenKind = iota
	tokenName              // a bare attribute or function name
	tokenKeyword           // SET, AND and the like, in any case
	tokenHash              // #name
	tokenColon             // :value
	tokenSymbol            // an operator, a bracket, or anything unexpected
)

type token struct {
	kind       tokenKind
	text       string
	start, end int // where it stands in the expression
}

// is reports whether the token is that keyword.
func (t token) is(keyword string) bool {
	return t.kind == tokenKeyword && strings.EqualFold(t.text, keyword)
}

// tokenize splits an expression into tokens, the last of which is tokenEnd.
// It never fails: the parser refuses what it does not expect.
func tokenize(text string) []token {
	var tokens []token
	for i := 0; i < len(text); {
		if strings.IndexByte(" \t\r\n", text[i]) >= 0 {
			i++
			continue
		}
		t := tokenAt(text, i)
		tokens = append(tokens, t)
		i = t.end
	}
	return append(tokens, token{kind: tokenEnd, text: "<EOF>", start: len(text), end: len(text)})
}

// tokenAt reads the token that starts at i.
func tokenAt(text string, i int) token {
	end, kind := i, tokenSymbol
	switch c := text[i]; {
	case isLetter(c):
		end = endOfWord(text, i)
		kind = tokenName
		if keyword(text[i:end]) {
			kind = tokenKeyword
		}
	case isDigit(c):
		for end < len(text) && isDigit(text[end]) {
			end++
		}
	case (c == '#' || c == ':') && endOfWord(text, i+1) > i+1:
		end = endOfWord(text, i+1)
		kind = tokenHash
		if c == ':' {
			kind = tokenColon
		}
	case strings.HasPrefix(text[i:], "<="), strings.HasPrefix(text[i:], ">="), strings.HasPrefix(text[i:], "<>"):
		end = i + 2
	default:
		_, width := utf8.DecodeRuneInString(text[i:])
		end = i + width
	}
	return token{kind: kind, text: text[i:end], start: i, end: end}
}

func keyword(word string) bool {
	switch strings.ToUpper(word) {
	case "SET", "REMOVE", "ADD", "DELETE", "AND", "OR", "NOT", "BETWEEN", "IN":
		return true
	}
	return false
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }

func endOfWord(text string, i int) int {
	for i < len(text) && (isLetter(text[i]) || isDigit(text[i]) || text[i] == '_') {
		i++
	}
	return i
}

// parser walks over the tokens of one expression. It stops at the first error
// of syntax; problem is the first error of another kind, which counts only if
// the syntax is right.
type parser struct {
	text    string
	tokens  []token
	at      int
	problem error
	uses    uses
}

func newParser(text string) *parser { return &parser{text: text, tokens: tokenize(text)} }

// peek returns the token at hand.
func (p *parser) peek() token { return p.tokens[p.at] }

// take returns the token at hand and steps over it. The end is never stepped
// over, because nothing takes it.
func (p *parser) take() token {
	t := p.tokens[p.at]
	p.at++
	return t
}

// skip steps over that symbol if it is the token at hand.
func (p *parser) skip(symbol string) bool {
	if t := p.peek(); t.kind == tokenSymbol && t.text == symbol {
		p.at++
		return true
	}
	return false
}

// skipKeyword steps over that keyword if it is the token at hand.
func (p *parser) skipKeyword(keyword string) bool {
	if p.peek().is(keyword) {
		p.at++
		return true
	}
	return false
}

// syntaxError reports the token at hand, shown with its neighbours.
func (p *parser) syntaxError() error {
	from, to := 0, len(p.text)
	if p.at > 0 {
		from = p.tokens[p.at-1].start
	}
	if p.at+1 < len(p.tokens)-1 {
		to = p.tokens[p.at+1].end
	}
	return refusalf("Syntax error; token: \"%s\", near: \"%s\"", p.peek().text, p.text[from:to])
}

// note remembers a problem that is not one of syntax, unless there is one already.
func (p *parser) note(format string, args ...any) {
	if p.problem == nil {
		p.problem = refusalf(format, args...)
	}
}
