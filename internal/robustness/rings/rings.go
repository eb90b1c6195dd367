// Package rings checks in which order the files of a package depend on each
// other.
package rings

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Check fails the test if a file of the package in the working directory names
// a type, field, method, function, variable or constant that a file of a ring
// outside declares. The innermost ring comes first; files of one ring may name
// each other. Each file is in one ring.
func Check(t *testing.T, rings ...[]string) {
	t.Helper()
	ringOf := map[string]int{}
	for i, files := range rings {
		for _, file := range files {
			if _, twice := ringOf[file]; twice {
				t.Errorf("%s is in two rings", file)
			}
			ringOf[file] = i
		}
	}
	p := load(t)
	for _, file := range p.names {
		if _, ok := ringOf[file]; !ok {
			t.Errorf("%s is in no ring", file)
		}
	}
	for file := range ringOf {
		if !slices.Contains(p.names, file) {
			t.Errorf("there is no file %s", file)
		}
	}
	var outward []string
	for id, o := range p.uses {
		from, to := p.fileOf(id.Pos()), p.fileOf(o.Pos())
		if o.Pkg() == p.Package && !isLocal(o) && ringOf[from] < ringOf[to] {
			outward = append(outward, fmt.Sprintf("%s names %s of %s", from, o.Name(), to))
		}
	}
	slices.Sort(outward)
	for _, line := range slices.Compact(outward) {
		t.Errorf("%s, a ring outside: move one of them, or let the inner one take a function", line)
	}
}

// isLocal reports whether o is a variable of a function.
func isLocal(o types.Object) bool {
	v, ok := o.(*types.Var)
	return ok && !v.IsField() && v.Parent() != v.Pkg().Scope()
}

// loaded is a package with its types.
type loaded struct {
	*types.Package
	fset  *token.FileSet
	names []string // of its files
	uses  map[*ast.Ident]types.Object
}

func (p *loaded) fileOf(pos token.Pos) string { return filepath.Base(p.fset.Position(pos).Filename) }

// load checks the types of the package in the working directory. What it
// imports has been compiled already.
func load(t *testing.T) *loaded {
	t.Helper()
	p := &loaded{fset: token.NewFileSet(), uses: map[*ast.Ident]types.Object{}}
	all, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range all {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(p.fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		p.names, files = append(p.names, name), append(files, f)
	}
	exports := exported(t)
	conf := types.Config{Importer: importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	if p.Package, err = conf.Check("checked", p.fset, files, &types.Info{Uses: p.uses}); err != nil {
		t.Fatal(err)
	}
	for id, o := range p.uses { // an instance of a generic type has methods and fields of its own
		if v, ok := o.(*types.Var); ok {
			p.uses[id] = v.Origin()
		}
		if f, ok := o.(*types.Func); ok {
			p.uses[id] = f.Origin()
		}
	}
	return p
}

// exported returns the compiled form of each package that the one in the
// working directory imports.
func exported(t *testing.T) map[string]string {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", ".")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
	}
	return exports
}
