package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// finder finds the cuts that begin in lines of one file.
type finder struct {
	*file
	wanted []lines
	info   *types.Info
	stack  []ast.Node // from the file to the parent of the node that is visited
	cuts   []*cut
}

func (f *finder) find() []*cut {
	ast.PreorderStack(f.syntax, nil, func(n ast.Node, stack []ast.Node) bool {
		f.stack = stack
		f.visit(n)
		return true
	})
	return f.cuts
}

func (f *finder) visit(n ast.Node) {
	switch n := n.(type) {
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CommClause:
		f.statements(n.Body)
	case *ast.CaseClause:
		f.statements(n.Body)
		f.omit("value of a case left out", n.List, 2)
		for _, e := range n.List {
			f.condition(e)
		}
	case *ast.IfStmt:
		f.condition(n.Cond)
	case *ast.ForStmt:
		f.condition(n.Cond)
	case *ast.UnaryExpr:
		if n.Op == token.NOT || n.Op == token.SUB {
			f.add("sign left out", n, f.code(n.X))
		}
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.CompositeLit:
		f.omit("element left out", n.Elts, 1)
	case *ast.CallExpr:
		f.call(n)
	case *ast.ReturnStmt:
		f.result(n)
	case *ast.BasicLit:
		f.number(n)
	case *ast.Ident:
		if other := map[string]string{"true": "false", "false": "true"}[n.Name]; other != "" {
			f.add("other value", n, other)
		}
	}
}

// add adds a cut that replaces n.
func (f *finder) add(kind string, n ast.Node, text string) { f.replace(kind, n.Pos(), n.End(), text) }

// replace adds a cut. It cannot be chosen when the tests run in a constant, for
// example, or if a copy of the function does something else.
func (f *finder) replace(kind string, from, to token.Pos, text string) {
	c := &cut{file: f.file, from: f.offset(from), to: f.offset(to), text: text, kind: kind, line: f.set.Position(from).Line}
	if len(f.stack) > 1 {
		c.fn, _ = f.stack[1].(*ast.FuncDecl)
	}
	if c.fn != nil && (strings.Contains(f.code(c.fn), "recover()") || strings.Contains(f.code(c.fn), "runtime.Caller")) {
		c.fn = nil
	}
	if slices.ContainsFunc(f.wanted, func(l lines) bool { return l.from <= c.line && c.line <= l.to }) {
		f.cuts = append(f.cuts, c)
	}
}

// statements leaves out one statement at a time. A block of one statement goes
// by that statement.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		without, body := "if false { "+f.code(s)+" }", &ast.BlockStmt{} // so that what it uses is used
		switch s := s.(type) {
		case *ast.CaseClause, *ast.CommClause:
			without = ""
		case *ast.DeferStmt:
			f.add("defer left out", s, f.code(s.Call))
		case *ast.IfStmt:
			body = s.Body
		case *ast.ForStmt:
			body = s.Body
		case *ast.RangeStmt:
			body = s.Body
		}
		if a, ok := s.(*ast.AssignStmt); len(body.List) != 1 && (!ok || a.Tok != token.DEFINE) {
			f.add("statement left out", s, without)
		}
	}
}

// omit leaves out one element of a list at a time, if there are at least so
// many.
func (f *finder) omit(kind string, list []ast.Expr, least int) {
	for i, e := range list {
		from, to := e.Pos(), e.End()
		if i+1 < len(list) {
			to = list[i+1].Pos()
		} else if i > 0 {
			from = list[i-1].End()
		}
		if len(list) >= least {
			f.replace(kind, from, to, "")
		}
	}
}

// condition turns a condition, unless its parts are cut anyway.
func (f *finder) condition(e ast.Expr) {
	switch ast.Unparen(e).(type) {
	case nil, *ast.BinaryExpr, *ast.UnaryExpr:
	default:
		f.add("condition turned", e, "!("+f.code(e)+")")
	}
}

// turned has the operators that take the place of another one: first the
// opposite, then the one that differs at the boundary.
var turned = map[token.Token][]string{
	token.EQL: {"!="}, token.NEQ: {"=="},
	token.LSS: {">=", "<="}, token.LEQ: {">", "<"}, token.GTR: {"<=", ">="}, token.GEQ: {"<", ">"},
	token.ADD: {"-"}, token.SUB: {"+"},
}

func (f *finder) binary(n *ast.BinaryExpr) {
	basic, _ := f.info.TypeOf(n).(*types.Basic)
	text := basic != nil && basic.Info()&types.IsString != 0
	switch n.Op {
	case token.LAND, token.LOR, token.ADD, token.MUL, token.QUO:
		if n.Op == token.ADD && !text || strings.HasPrefix(f.code(n.Y), "time.") {
			break
		}
		f.add("half left out", n, f.code(n.X))
		f.add("half left out", n, f.code(n.Y))
	}
	for i, op := range turned[n.Op] {
		f.replace([]string{"operator turned", "boundary moved"}[i], n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), op)
	}
}

// call leaves out a call that returns another value of the same type, swaps
// adjacent arguments of one type, and leaves out one of any number.
func (f *finder) call(n *ast.CallExpr) {
	name := f.code(n.Fun)
	if other := map[string]string{"min": "max", "max": "min"}[name]; other != "" {
		f.add("operator turned", n.Fun, other)
		f.omit("argument left out", n.Args, 2)
		return
	}
	if sig, ok := f.info.TypeOf(n.Fun).(*types.Signature); ok && sig.Variadic() && sig.Params().Len() <= len(n.Args) && !n.Ellipsis.IsValid() && !strings.HasSuffix(name, "f") {
		f.omit("argument left out", n.Args[sig.Params().Len()-1:], 1)
	}
	same := func(a, b ast.Expr) bool {
		return f.info.TypeOf(a) != nil && types.Identical(f.info.TypeOf(a), f.info.TypeOf(b))
	}
	if fn, ok := n.Fun.(*ast.SelectorExpr); ok && same(n, fn.X) {
		f.add("call left out", n, f.code(fn.X))
	}
	if len(n.Args) == 1 && same(n, n.Args[0]) {
		f.add("call left out", n, f.code(n.Args[0]))
	}
	for i := range len(n.Args) - 1 {
		if a, b := n.Args[i], n.Args[i+1]; same(a, b) && f.code(a) != f.code(b) {
			f.replace("arguments swapped", a.Pos(), b.End(), f.code(b)+f.between(a.End(), b.Pos())+f.code(a))
		}
	}
}

// result returns a zero value in place of one result at a time. What would
// have been returned is computed all the same.
func (f *finder) result(n *ast.ReturnStmt) {
	zeros := f.zeros()
	if len(n.Results) == 1 && len(zeros) > 1 { // of a call
		names := []string{"cut0", "cut1", "cut2", "cut3", "cut4", "cut5"}[:len(zeros)]
		for i, zero := range zeros {
			results := slices.Replace(slices.Clone(names), i, i+1, zero)
			f.add("zero result", n, strings.Join(names, ", ")+" := "+f.code(n.Results[0])+"; _ = "+names[i]+"; return "+strings.Join(results, ", "))
		}
		return
	}
	for i, e := range n.Results {
		if was := f.code(e); !slices.Contains([]string{"nil", "0", `""`, "true", "false"}, was) {
			f.replace("zero result", n.Pos(), e.End(), "_ = "+was+"; "+f.between(n.Pos(), e.Pos())+zeros[i])
		}
	}
}

// zeros returns the zero values of the results of the innermost function.
func (f *finder) zeros() (zeros []string) {
	var results *ast.FieldList
	for _, n := range f.stack {
		switch n := n.(type) {
		case *ast.FuncDecl:
			results = n.Type.Results
		case *ast.FuncLit:
			results = n.Type.Results
		}
	}
	if results == nil {
		return nil
	}
	for _, field := range results.List {
		for range max(len(field.Names), 1) {
			zeros = append(zeros, "*new("+f.code(field.Type)+")")
		}
	}
	return zeros
}

// number adds and takes one, but not in factors, because a duration is hardly
// ever exact, nor where that is the same as to move the boundary.
func (f *finder) number(n *ast.BasicLit) {
	var op token.Token
	if parent, ok := f.stack[len(f.stack)-1].(*ast.BinaryExpr); ok {
		op = parent.Op
	}
	v, err := strconv.Atoi(n.Value)
	if n.Kind != token.INT || err != nil || op == token.MUL || op == token.SHL {
		return
	}
	if op != token.LSS && op != token.GEQ {
		f.add("number changed", n, strconv.Itoa(v+1))
	}
	if op != token.LEQ && op != token.GTR && v > 0 {
		f.add("number changed", n, strconv.Itoa(v-1))
	}
}
