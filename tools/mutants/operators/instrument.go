package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// edit replaces the bytes from at to end. Of edits at one place, those of outer
// expressions come first before an expression, and last after one.
type edit struct {
	at, end int
	depth   int // of the expression; negative where it ends
	text    string
}

// instrumented is one file while it gets its changes.
type instrumented struct {
	*pkg
	text    string
	base    int // offset of the file in the file set
	edits   []edit
	changes *[]string // of the package; the index is the id
	depth   int
}

// instrument writes the package with all its changes into dir, with the overlay
// that puts it in place, and returns a description of each change.
func (p *pkg) instrument(dir string) ([]string, error) {
	var changes []string
	overlay := map[string]string{}
	for i, f := range p.files {
		text, err := os.ReadFile(p.names[i])
		if err != nil {
			return nil, err
		}
		file := &instrumented{pkg: p, text: string(text), base: p.fset.File(f.Pos()).Base(), changes: &changes}
		file.walk(f)
		to := filepath.Join(dir, filepath.Base(p.names[i]))
		if err := os.WriteFile(to, []byte(file.edited()), 0o600); err != nil {
			return nil, err
		}
		overlay[p.names[i]] = to
	}
	to := filepath.Join(dir, helperName)
	if err := os.WriteFile(to, []byte(fmt.Sprintf(helper, p.files[0].Name.Name, max(len(changes), 1))), 0o600); err != nil {
		return nil, err
	}
	overlay[filepath.Join(p.dir, helperName)] = to
	b, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return nil, err
	}
	return changes, os.WriteFile(filepath.Join(dir, overlayName), b, 0o600)
}

func (f *instrumented) offset(p token.Pos) int { return int(p) - f.base }

func (f *instrumented) source(n ast.Node) string { return f.text[f.offset(n.Pos()):f.offset(n.End())] }

// change adds a change and returns its id.
func (f *instrumented) change(at token.Pos, what string) int {
	place := f.fset.Position(at)
	*f.changes = append(*f.changes, fmt.Sprintf("%s:%d:%d: %s", filepath.Base(place.Filename), place.Line, place.Column, what))
	return len(*f.changes) - 1
}

// surround puts text before and after an expression.
func (f *instrumented) surround(n ast.Node, before, after string) {
	at, end := f.offset(n.Pos()), f.offset(n.End())
	f.edits = append(f.edits, edit{at, at, f.depth, before}, edit{end, end, -f.depth, after})
}

func (f *instrumented) replace(at token.Pos, old, text string) {
	f.edits = append(f.edits, edit{f.offset(at), f.offset(at) + len(old), f.depth, text})
}

func (f *instrumented) walk(root ast.Node) {
	f.depth = 0
	var path []ast.Node
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			path = path[:len(path)-1]
			return true
		}
		path = append(path, n)
		f.depth = len(path)
		switch n := n.(type) {
		case *ast.GenDecl:
			if n.Tok != token.VAR {
				path = path[:len(path)-1]
				return false // constants, types and imports
			}
		case *ast.BinaryExpr:
			f.binary(n)
		case *ast.UnaryExpr:
			if n.Op == token.SUB && f.number(n) {
				f.replace(n.OpPos, "-", fmt.Sprintf("mutantNegative(%d, ", f.change(n.OpPos, "-x becomes x")))
				end := f.offset(n.End())
				f.edits = append(f.edits, edit{end, end, -f.depth, ")"})
			}
		case *ast.IncDecStmt:
			op := n.Tok.String()
			id := f.change(n.TokPos, op+" is inverted")
			f.replace(n.TokPos, op, fmt.Sprintf(" %c= mutantStep(%d, %s)", op[0], id, f.source(n.X)))
		}
		return true
	})
}

func (f *instrumented) binary(n *ast.BinaryExpr) {
	if v := f.info.Types[n]; v.Value != nil {
		return
	}
	op := n.Op.String()
	switch n.Op {
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		negated := f.change(n.OpPos, op+" is negated")
		after := fmt.Sprintf(") != mutantOn(%d)", negated)
		equal := fmt.Sprintf("(%s) == (%s)", f.source(n.X), f.source(n.Y))
		switch n.Op {
		case token.LSS, token.GTR:
			after += fmt.Sprintf(" || mutantOn(%d) && %s", f.change(n.OpPos, op+" becomes "+op+"="), equal)
		case token.LEQ, token.GEQ:
			after += fmt.Sprintf(" && !(mutantOn(%d) && %s)", f.change(n.OpPos, op+" becomes "+op[:1]), equal)
		}
		f.surround(n, "((", after+")")
	case token.LAND, token.LOR:
		other := map[token.Token]string{token.LAND: "||", token.LOR: "&&"}[n.Op]
		f.replace(n.OpPos, op, ", func() bool { return (") // the line may end here
		f.surround(n, fmt.Sprintf("mutant%s(%d, ", map[token.Token]string{token.LAND: "And", token.LOR: "Or"}[n.Op], f.change(n.OpPos, op+" becomes "+other)), ") })")
	case token.ADD, token.SUB, token.MUL, token.QUO, token.REM:
		if f.number(n) {
			f.replace(n.OpPos, op, ",")
			f.surround(n, fmt.Sprintf("mutantArithmetic(%d, '%s', ", f.change(n.OpPos, op+" becomes "+inverse[n.Op]), op), ")")
		}
	}
}

var inverse = map[token.Token]string{token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*", token.REM: "*"}

// number reports whether an expression is a number that is not known when the
// program is compiled, and whose type both operands have.
func (f *instrumented) number(e ast.Expr) bool {
	v := f.info.Types[e]
	if v.Value != nil || v.Type == nil {
		return false
	}
	b, ok := v.Type.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsNumeric != 0 && b.Info()&types.IsUntyped == 0
}

// edited returns the text with all edits.
func (f *instrumented) edited() string {
	slices.SortStableFunc(f.edits, func(a, b edit) int {
		// What ends an expression comes before what begins the next one.
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(cmp.Compare(a.depth, 0), cmp.Compare(b.depth, 0)), cmp.Compare(a.depth, b.depth))
	})
	var b strings.Builder
	from := 0
	for _, e := range f.edits {
		b.WriteString(f.text[from:e.at])
		b.WriteString(e.text)
		from = e.end
	}
	b.WriteString(f.text[from:])
	return b.String()
}

const (
	helperName  = "mutant_operators.go"
	overlayName = "overlay.json"
)

// helper is a file of the package: its name and the number of changes are
// missing.
const helper = `package %s

import (
	"os"
	"strconv"
	"sync/atomic"
)

type mutantNumber interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

var (
	mutantReached [%d]atomic.Bool
	mutantChosen  = mutantID(os.Getenv("MUTANT"))
	mutantNotes   = os.Getenv("MUTANT_NOTES")
)

func mutantID(s string) int {
	id, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return id
}

func mutantOn(id int) bool {
	if mutantNotes != "" && mutantReached[id].CompareAndSwap(false, true) {
		f, err := os.OpenFile(mutantNotes, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, _ = f.WriteString(strconv.Itoa(id) + "\n")
			_ = f.Close()
		}
	}
	return id == mutantChosen
}

func mutantAnd(id int, x bool, y func() bool) bool {
	if mutantOn(id) {
		return x || y()
	}
	return x && y()
}

func mutantOr(id int, x bool, y func() bool) bool {
	if mutantOn(id) {
		return x && y()
	}
	return x || y()
}

func mutantArithmetic[T mutantNumber](id int, op rune, x, y T) T {
	on := mutantOn(id)
	switch {
	case op == '+' && !on, op == '-' && on:
		return x + y
	case op == '-', op == '+':
		return x - y
	case op == '*' && !on, op == '/' && on:
		return x * y
	case op == '%%' && !on:
		return T(int64(x) %% int64(y))
	case op == '%%':
		return x * y
	}
	return x / y
}

func mutantNegative[T mutantNumber](id int, x T) T {
	if mutantOn(id) {
		return x
	}
	return -x
}

func mutantStep[T mutantNumber](id int, _ T) T {
	if mutantOn(id) {
		var zero T
		return zero - 1
	}
	return 1
}
`
