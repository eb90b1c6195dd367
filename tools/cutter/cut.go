package main

import (
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// cut replaces a part of a file.
type cut struct {
	file     *file
	from, to int // offsets
	line     int
	text     string
	kind     string
	fn       *ast.FuncDecl // around it, or nil
	id       string

	noticed bool
	met     []string // the packages whose tests reach the line
}

const leftOut = "statement left out"

func (c *cut) compare(d *cut) int {
	return cmp.Or(cmp.Compare(c.file.name, d.file.name), cmp.Compare(c.from, d.from), cmp.Compare(c.to, d.to), cmp.Compare(c.text, d.text))
}

// String returns the place, the kind, the line before and after, and which
// tests the cut has met.
func (c *cut) String() string {
	text := c.file.text
	start := strings.LastIndexByte(text[:c.from], '\n') + 1
	end := c.to + strings.IndexByte(text[c.to:]+"\n", '\n')
	brief := func(text string) string {
		text = strings.Join(strings.Fields(text), " ")
		return text[:min(len(text), 200)]
	}
	return fmt.Sprintf("%s:%d: %s\n\t- %s\n\t+ %s\n\ttests: %s", c.file.shown, c.line, c.kind,
		brief(text[start:end]), brief(text[start:c.from]+c.text+text[c.to:end]), cmp.Or(strings.Join(c.met, " "), "none"))
}

// applied returns the text of the file with the cut.
func (c *cut) applied() string { return c.file.text[:c.from] + c.text + c.file.text[c.to:] }

// isChosen reports whether the cut can be chosen when the tests run: not in a
// constant, for example, or if a copy of the function does something else.
func (c *cut) isChosen() bool {
	return c.fn != nil && !strings.Contains(c.file.code(c.fn), "recover()") && !strings.Contains(c.file.code(c.fn), "runtime.Caller")
}

// chosen returns the text of the file with these cuts of it: each function
// begins with copies of its body, of which the variable CUT chooses one. To
// build a test program for each cut takes longer than to run it.
func chosen(f *file, cuts []*cut) string {
	text := f.text
	for _, c := range slices.Backward(cuts) { // copies do not move what comes before them
		if c.file != f || !c.isChosen() {
			continue
		}
		at, end := f.offset(c.fn.Body.Pos())+1, f.offset(c.fn.Body.End())
		call := "func() { " + f.text[at:c.from] + c.text + f.text[c.to:end] + "(); return"
		if r := c.fn.Type.Results; r != nil {
			call = "return func() " + f.code(r) + "{ " + f.text[at:c.from] + c.text + f.text[c.to:end] + "()"
		}
		text = text[:at] + " if cutChosen == " + strconv.Quote(c.id) + " { " + call + " }; " + text[at:]
	}
	return text
}

// file is a file of the code that has lines to cut.
type file struct {
	name, shown string // shown is from the root of the repository
	text        string
	syntax      *ast.File
	wanted      []lines
	path        string // of its package
	set         *token.FileSet
	others      []*ast.File // of its package, without the bodies of functions
	imports     types.Importer
}

func (f *file) offset(p token.Pos) int            { return f.set.Position(p).Offset }
func (f *file) between(from, to token.Pos) string { return f.text[f.offset(from):f.offset(to)] }
func (f *file) code(n ast.Node) string            { return f.between(n.Pos(), n.End()) }

// find returns the cuts that compile.
func find(ctx context.Context, root string, wanted map[string][]lines) (cuts []*cut, err error) {
	for name, l := range wanted {
		f, err := load(ctx, root, name)
		if err != nil {
			return nil, err
		}
		if f == nil {
			fmt.Fprintln(os.Stderr, "not built on this platform:", name)
			continue
		}
		info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
		if wrong := f.check(f.syntax, info); wrong != "" {
			return nil, fmt.Errorf("%s does not compile: %s", f.shown, wrong)
		}
		f.wanted = l
		cuts = append(cuts, (&finder{file: f, info: info}).find()...)
	}
	slices.SortFunc(cuts, (*cut).compare)
	cuts = slices.CompactFunc(cuts, func(c, d *cut) bool { return c.compare(d) == 0 })
	cuts = slices.DeleteFunc(cuts, func(c *cut) bool { return !c.compiles() })
	for i, c := range cuts {
		c.id = strconv.Itoa(i)
	}
	return cuts, nil
}

// load parses a file, and the others of its package. It returns nil if the file
// is not built on this platform.
func load(ctx context.Context, root, name string) (*file, error) {
	dir := filepath.Dir(name)
	out, err := command(ctx, dir, "go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}\t{{join .GoFiles \" \"}}", ".")
	if err != nil {
		return nil, err
	}
	f, exports := &file{name: name, set: token.NewFileSet()}, map[string]string{}
	var names []string
	for line := range strings.Lines(out) { // the package itself is the last
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		f.path, exports[fields[0]], names = fields[0], fields[1], strings.Fields(fields[2])
	}
	f.imports = importer.ForCompiler(f.set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	if !slices.Contains(names, filepath.Base(name)) {
		return nil, nil
	}
	for _, other := range names {
		if other == filepath.Base(name) {
			continue
		}
		syntax, err := parser.ParseFile(f.set, filepath.Join(dir, other), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				fn.Body = nil
			}
		}
		f.others = append(f.others, syntax)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f.text = string(text)
	if f.shown, err = filepath.Rel(root, name); err == nil {
		f.syntax, err = parser.ParseFile(f.set, name, text, parser.SkipObjectResolution)
	}
	return f, err
}

// check returns what is wrong in the file if it is changed like this.
func (f *file) check(changed *ast.File, info *types.Info) (wrong string) {
	conf := types.Config{Importer: f.imports, Error: func(err error) {
		if e, ok := err.(types.Error); ok && f.set.Position(e.Pos).Filename == f.name && wrong == "" {
			wrong = e.Msg
		}
	}}
	_, _ = conf.Check(f.path, f.set, append([]*ast.File{changed}, f.others...), info)
	return wrong
}

var unused = regexp.MustCompile(`declared and not used: (\w+)`)

// compiles reports whether the cut does. If a statement that is left out was
// the only use of a variable, it gets another one.
func (c *cut) compiles() bool {
	for {
		text := c.applied()
		if c.isChosen() {
			text = chosen(c.file, []*cut{c}) + "\nvar cutChosen string\n"
		}
		syntax, err := parser.ParseFile(c.file.set, c.file.name, text, parser.SkipObjectResolution)
		if err != nil {
			return false
		}
		wrong := c.file.check(syntax, nil)
		name := unused.FindStringSubmatch(wrong)
		if name == nil || c.kind != leftOut || strings.Contains(c.text, "_ = "+name[1]+";") {
			return wrong == ""
		}
		c.text += "_ = " + name[1] + "; "
	}
}
