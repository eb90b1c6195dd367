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
	fn       *ast.FuncDecl // around it, if the cut can be chosen when the tests run
	id       int

	noticed bool
	met     []string // the packages whose tests reach it
}

func (c *cut) compare(d *cut) int {
	return cmp.Or(cmp.Compare(c.file.name, d.file.name), cmp.Compare(c.from, d.from), cmp.Compare(c.to, d.to), cmp.Compare(c.text, d.text))
}

// String returns the place, the kind, the line before and after, and which
// tests the cut has met.
func (c *cut) String() string {
	start := strings.LastIndexByte(c.file.text[:c.from], '\n') + 1
	end := c.to + strings.IndexByte(c.file.text[c.to:]+"\n", '\n')
	brief := func(text string) string {
		text = strings.Join(strings.Fields(text), " ")
		return text[:min(len(text), 200)]
	}
	return fmt.Sprintf("%s:%d: %s\n\t- %s\n\t+ %s\n\ttests: %s", c.file.shown, c.line, c.kind,
		brief(c.file.text[start:end]), brief(c.between(start, end)), cmp.Or(strings.Join(c.met, " "), "none"))
}

// between returns a part of the file with the cut.
func (c *cut) between(from, to int) string {
	return c.file.text[from:c.from] + c.text + c.file.text[c.to:to]
}

// chooser chooses the cut whose number is in CUT, and notes in the folder CUTS
// which functions with cuts are called.
const chooser = `

import ("os"; "strconv"; "sync/atomic")

var (
	cutChosen, _ = strconv.Atoi(os.Getenv("CUT"))
	cutsReached  [100_000]atomic.Bool
)

func isCut(id int) bool {
	if cutChosen == 0 && !cutsReached[id].Swap(true) {
		os.WriteFile(os.Getenv("CUTS")+"/"+strconv.Itoa(id), nil, 0o600)
	}
	return cutChosen == id
}
`

// chosen returns the text of the file with these cuts of it: each function
// begins with copies of its body, of which the chooser chooses one. To build a
// test program for each cut takes longer than to run it.
func chosen(f *file, cuts []*cut) string {
	text := f.text
	for _, c := range slices.Backward(cuts) { // copies do not move what comes before them
		if c.file != f || c.fn == nil {
			continue
		}
		at, end := f.offset(c.fn.Body.Pos())+1, f.offset(c.fn.Body.End())
		call := "func() { " + c.between(at, end) + "(); return"
		if r := c.fn.Type.Results; r != nil {
			call = "return func() " + f.code(r) + "{ " + c.between(at, end) + "()"
		}
		text = text[:at] + " if isCut(" + strconv.Itoa(c.id) + ") { " + call + " }; " + text[at:]
	}
	return text
}

// file is a file of the code that has lines to cut.
type file struct {
	name, shown string // shown is from the root of the repository
	text        string
	syntax      *ast.File
	path        string // of its package
	set         *token.FileSet
	others      []*ast.File // of its package
	imports     types.Importer
}

func (f *file) offset(p token.Pos) int            { return f.set.Position(p).Offset }
func (f *file) between(from, to token.Pos) string { return f.text[f.offset(from):f.offset(to)] }
func (f *file) code(n ast.Node) string            { return f.between(n.Pos(), n.End()) }

// find returns the cuts that compile.
func find(ctx context.Context, root string, wanted map[string][]lines) (cuts []*cut, err error) {
	for name, l := range wanted {
		f, err := load(ctx, filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		if f.syntax == nil {
			fmt.Fprintln(os.Stderr, "not built on this platform:", name)
			continue
		}
		f.shown = name
		info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
		if err := f.check(f.syntax, info); err != nil {
			return nil, err
		}
		cuts = append(cuts, (&finder{file: f, info: info, wanted: l}).find()...)
	}
	slices.SortFunc(cuts, (*cut).compare)
	cuts = slices.CompactFunc(cuts, func(c, d *cut) bool { return c.compare(d) == 0 })
	cuts = slices.DeleteFunc(cuts, func(c *cut) bool { return !c.compiles() })
	for i, c := range cuts {
		c.id = i + 1
	}
	return cuts, nil
}

// load parses a file, unless it is not built on this platform, and the others
// of its package.
func load(ctx context.Context, name string) (*file, error) {
	dir, base := filepath.Split(name)
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
	for _, other := range names {
		text, err := os.ReadFile(dir + other)
		if err != nil {
			return nil, err
		}
		syntax, err := parser.ParseFile(f.set, dir+other, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if other == base {
			f.text, f.syntax = string(text), syntax
		} else {
			f.others = append(f.others, syntax)
		}
	}
	return f, nil
}

// check reports what is wrong if the file is changed like this.
func (f *file) check(changed *ast.File, info *types.Info) error {
	conf := types.Config{Importer: f.imports}
	_, err := conf.Check(f.path, f.set, append([]*ast.File{changed}, f.others...), info)
	return err
}

// compiles reports whether the cut does.
func (c *cut) compiles() bool {
	text := c.between(0, len(c.file.text))
	if c.fn != nil {
		text = chosen(c.file, []*cut{c}) + "\nfunc isCut(int) bool { return false }\n"
	}
	syntax, err := parser.ParseFile(c.file.set, c.file.name, text, parser.SkipObjectResolution)
	return err == nil && c.file.check(syntax, nil) == nil
}
