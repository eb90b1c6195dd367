package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// repository makes one of a module with these files in a new folder.
func repository(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	files["go.mod"] = "module example\n\ngo 1.25\n"
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}} {
		err = errors.Join(err, exec.Command("git", append([]string{"-C", root}, args...)...).Run())
	}
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestFind(t *testing.T) {
	t.Parallel()
	tests := []struct{ code, want string }{
		{"func f(m map[int]int) { delete(m, 1); return }", "~delete(m, 1)| ~return| 1>2| 1>0"},
		{"func f() { x, y := g(), g(); x = y; print(x) }", "~x = y| ~print(x)"},
		{"func f() { defer g() }", "~defer g()| defer g()>g()"},
		{"func f() { if h() { g(); g() } }", "~if h() { g(); g() }| h()>!(h())| ~g()| ~g()"},
		{"func f() { use(point{x: k, y: k}) }", "~use(point{x: k, y: k})| ~x: k, | ~, y: k"},
		{"func f() bool { return h() && !l }", "return h() && !l>_ = h() && !l; return *new(bool)| h() && !l>h()| h() && !l>!l| !l>l"},
		{"func f(n int) { for n < k { n++ } }", "<><=| <>>=| ~n++"},
		{"func f(n int) { switch n { case k, 7: g() } }", "~switch n { case k, 7: g() }| ~case k, 7: g()| ~k, | ~, 7| 7>6| 7>8| ~g()"},
		{"func f(a, b int, s string) { three(a, b, s) }", "~three(a, b, s)| a, b>b, a"},
		{"func f(p *point) *point { return p.same().same() }", "return p.same().same()>_ = p.same().same(); return *new(*point)| p.same().same()>p.same()| p.same()>p"},
		{"func f() (int, error) { return two() }", "return two()>cut0, cut1 := two(); _ = cut0; return *new(int), cut1| return two()>cut0, cut1 := two(); _ = cut1; return cut0, *new(error)"},
		{"func f() (point, bool) { return p, false }", "return p>_ = p; return *new(point)| false>true"},
		{"const n = 10 * q + 3", "10 * q>10| 10 * q>q| +>-| 3>2| 3>4"},
		{"var s = \"a\" + t", "\"a\" + t>\"a\"| \"a\" + t>t"},
		{"func f(a int) { print(max(a, k)) }", "~print(max(a, k))| max>min| ~a, | ~, k"},
	}
	code := `package example
const q = 4
type point struct{ x, y int }
var k, l, t, p = 1, true, "t", point{}
func g() int { return 1 }
func h() bool { return true }
func use(point) {}
func (p *point) same() *point { return p }
func two() (int, error) { return 1, nil }
func three(a, b int, s string) {}
`
	first := 1 + strings.Count(code, "\n")
	for i, test := range tests { // each has a line
		code += regexp.MustCompile(`\bfunc f\b|\bconst n\b|\bvar s\b`).ReplaceAllString(test.code, fmt.Sprintf("${0}%d", i)) + "\n"
	}
	cuts, err := find(t.Context(), repository(t, map[string]string{"a.go": code}), map[string][]lines{"a.go": {{first, 99}}})
	if err != nil {
		t.Fatal(err)
	}
	for i, test := range tests {
		var got []string
		for _, c := range cuts {
			if c.line == first+i {
				got = append(got, described(c))
			}
		}
		want := strings.Split(test.want, "| ")
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s\n got %s\nwant %s", test.code, strings.Join(got, "| "), strings.Join(want, "| "))
		}
	}
}

// described returns "was>becomes", or "~was" of what is left out.
func described(c *cut) string {
	was := c.file.text[c.from:c.to]
	if c.text == "" || c.text == "if false { "+was+" }" {
		return "~" + was
	}
	return was + ">" + c.text
}

// A cut survives if no test reaches it, or none fails. Constants, and functions
// that recover, are built one by one.
func TestTry(t *testing.T) {
	t.Parallel()
	root := repository(t, map[string]string{
		"a.go": `package example

const limit = 3

func allowed(n int) bool { return n < limit }

func safe(f func()) (failed bool) {
	defer func() { failed = recover() != nil }()
	f()
	return false
}

func unseen() int { return len("x") }
`,
		"a_test.go": `package example

import "testing"

func TestAllowed(t *testing.T) {
	if allowed(9) || !allowed(2) || safe(func() {}) || !safe(func() { panic(1) }) {
		t.Fail()
	}
}
`,
	})
	cuts, err := find(t.Context(), root, map[string][]lines{"a.go": {everything}})
	if err == nil {
		err = try(t.Context(), root, cuts)
	}
	if err != nil {
		t.Fatal(err)
	}
	met := map[string]int{}
	for _, c := range cuts {
		if !c.noticed {
			met[described(c)] = len(c.met)
		}
	}
	want := map[string]int{"3>4": 1, "<><=": 1, "false>true": 1, `return len("x")>_ = len("x"); return *new(int)`: 0}
	if len(cuts) != 12 || !reflect.DeepEqual(met, want) {
		t.Errorf("of %d cuts, %v survive, want %v", len(cuts), met, want)
	}
}

func TestHunks(t *testing.T) {
	t.Parallel()
	got := hunks("--- a/x.go\n+++ b/x.go\n@@ -1 +2 @@\n-a\n+b\n@@ -5,0 +7,3 @@ func f\n+c\n--- a/y.go\n+++ b/y.go\n@@ -1,2 +0,0 @@\n")
	if want := map[string][]lines{"x.go": {{2, 2}, {7, 9}}}; !reflect.DeepEqual(got, want) {
		t.Errorf("hunks are %v, want %v", got, want)
	}
}
