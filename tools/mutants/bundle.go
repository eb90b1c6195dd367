package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// bundle is a test binary that holds many bugs, of which an environment
// variable chooses one. To build a binary for each takes ten times as long as
// to run the tests. A bug inside a function becomes a copy of that function,
// and the function calls the copy if its bug is chosen.
type bundle struct {
	root, work string
	in         string       // the folder of the tests
	plans      map[int]plan // by the index of the bug in the table
}

// plan is where the copy of a function goes.
type plan struct {
	file     string
	at       int    // offset of the function's first statement
	dispatch string // to put there
	copy     string // of the function, with the bug
	pkg      string
}

// planOf returns false if the bug is not inside one function that can be
// copied: in a constant, for example, in a file that is not Go, or in another
// package than its tests.
func planOf(root string, id int, m mutant) (plan, bool) {
	if !strings.HasSuffix(m.file, ".go") || path.Dir(m.file) != m.folder() {
		return plan{}, false
	}
	name := filepath.Join(root, filepath.FromSlash(m.file))
	b, err := os.ReadFile(name)
	if err != nil {
		return plan{}, false
	}
	text := string(b)
	from := strings.Index(text, m.old)
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, b, parser.SkipObjectResolution)
	if err != nil || from < 0 || strings.Count(text, m.old) > 1 {
		return plan{}, false
	}
	offset := func(p token.Pos) int { return set.Position(p).Offset }
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || from < offset(fn.Body.Lbrace) || from+len(m.old) > offset(fn.End()) {
			continue
		}
		call, ok := callOf(fn, fmt.Sprintf("%sMutant%d", fn.Name.Name, id))
		if !ok {
			return plan{}, false
		}
		start, end, ident := offset(fn.Pos()), offset(fn.End()), offset(fn.Name.End())
		return plan{
			file: name, at: offset(fn.Body.Lbrace) + 1, pkg: f.Name.Name,
			dispatch: fmt.Sprintf(" if mutantChosen == %d { %s }; ", id, call),
			copy: fmt.Sprintf("\n//line mutant_%d.go:1\n", id) + text[start:ident] + fmt.Sprintf("Mutant%d", id) + text[ident:from] +
				m.new + text[from+len(m.old):end] + "\n",
		}, true
	}
	return plan{}, false
}

// callOf returns the statement that calls the copy of fn by another name with
// the same arguments. It reports false if an argument has no name.
func callOf(fn *ast.FuncDecl, name string) (string, bool) {
	var args []string
	for _, p := range fn.Type.Params.List {
		for _, n := range p.Names {
			if n.Name == "_" {
				return "", false
			}
			arg := n.Name
			if _, variadic := p.Type.(*ast.Ellipsis); variadic {
				arg += "..."
			}
			args = append(args, arg)
		}
		if len(p.Names) == 0 {
			return "", false
		}
	}
	if fn.Recv != nil {
		if r := fn.Recv.List[0].Names; len(r) == 0 || r[0].Name == "_" {
			return "", false
		}
		name = fn.Recv.List[0].Names[0].Name + "." + name
	} else if tp := fn.Type.TypeParams; tp != nil {
		var types []string
		for _, p := range tp.List {
			for _, n := range p.Names {
				types = append(types, n.Name)
			}
		}
		name += "[" + strings.Join(types, ", ") + "]"
	}
	call := name + "(" + strings.Join(args, ", ") + ")"
	if fn.Type.Results == nil {
		return call + "; return", true
	}
	return "return " + call, true
}

// split returns a bundle for each folder of tests, and the bugs that no bundle
// can hold.
func split(root string, mutants []mutant) (bundles []*bundle, singles []mutant) {
	byFolder := map[string]*bundle{}
	for id, m := range mutants {
		p, ok := planOf(root, id, m)
		if !ok {
			singles = append(singles, m)
			continue
		}
		b := byFolder[m.folder()]
		if b == nil {
			b = &bundle{root: root, in: m.folder(), plans: map[int]plan{}}
			byFolder[b.in] = b
			bundles = append(bundles, b)
		}
		b.plans[id] = p
	}
	return bundles, singles
}

// named returns the tests that the table names for the bugs of the bundle.
func (b *bundle) named(mutants []mutant) string {
	var tests []string
	for id := range b.plans {
		tests = append(tests, mutants[id].by)
	}
	return strings.Join(tests, "|")
}

// test runs tests with one of the bugs, or with none if id is negative.
func (b *bundle) test(ctx context.Context, id int, tests string) (output []byte, passed bool) {
	cmd := exec.CommandContext(ctx, b.path("bundle.test"), "-test.failfast", "-test.timeout="+limit.String(), "-test.run", pattern(tests))
	cmd.Dir = filepath.Join(b.root, filepath.FromSlash(b.in))
	cmd.Env = append(os.Environ(), "MUTANT="+strconv.Itoa(id))
	return finish(cmd)
}

// build writes the overlay and builds the binary. It returns what the compiler
// says of the bugs that do not compile, and builds the rest without them.
func (b *bundle) build(ctx context.Context, work string) (wrong map[int]string, err error) {
	if b.work, err = os.MkdirTemp(work, ""); err != nil {
		return nil, err
	}
	wrong = map[int]string{}
	for {
		if err := b.overlay(); err != nil {
			return nil, err
		}
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-gcflags=-e", "-overlay="+b.path("overlay.json"), "-o", b.path("bundle.test"), ".")
		cmd.Dir = filepath.Join(b.root, filepath.FromSlash(b.in))
		out, err := cmd.CombinedOutput()
		if err == nil {
			return wrong, nil
		}
		found := false
		for _, line := range bytes.Split(out, []byte("\n")) {
			if at := inCopy.FindSubmatch(line); at != nil {
				id, _ := strconv.Atoi(string(at[1]))
				if _, planned := b.plans[id]; planned {
					delete(b.plans, id)
					wrong[id], found = string(line), true
				}
			}
		}
		if !found {
			return nil, fmt.Errorf("go test -c in %s: %w\n%s", b.in, err, out)
		}
	}
}

var inCopy = regexp.MustCompile(`mutant_(\d+)\.go:`)

func (b *bundle) path(name string) string { return filepath.Join(b.work, name) }

func (b *bundle) overlay() error {
	byFile := map[string][]int{}
	for id, p := range b.plans {
		byFile[p.file] = append(byFile[p.file], id)
	}
	replaced := map[string]string{}
	add := func(name, text string) error {
		to := b.path(fmt.Sprintf("%d.go", len(replaced)))
		replaced[name] = to
		return os.WriteFile(to, []byte(text), 0o600)
	}
	for file, ids := range byFile {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		slices.SortFunc(ids, func(x, y int) int { return b.plans[y].at - b.plans[x].at }) // from the end
		edited, copies := string(text), ""
		for _, id := range ids {
			p := b.plans[id]
			edited = edited[:p.at] + p.dispatch + edited[p.at:]
			copies += p.copy
		}
		if err := add(file, edited+copies); err != nil {
			return err
		}
		if err := add(filepath.Join(filepath.Dir(file), "mutant_chosen.go"), fmt.Sprintf(chosen, b.plans[ids[0]].pkg)); err != nil {
			return err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return err
	}
	return os.WriteFile(b.path("overlay.json"), text, 0o600)
}

const chosen = `package %s

import (
	"os"
	"strconv"
)

var mutantChosen = func() int {
	id, err := strconv.Atoi(os.Getenv("MUTANT"))
	if err != nil {
		return -1
	}
	return id
}()
`
