package main

import (
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
	if err != nil {
		t.Fatal(err)
	}
	files["go.mod"] = "module example\n\ngo 1.25\n"
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}} {
		if out, err := exec.Command("git", append([]string{"-C", root}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	return root
}

func TestFind(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, code, want string }{
		{"statement", "func f(m map[int]int) { delete(m, 1); return }", "~delete(m, 1)| ~return| 1>2| 1>0"},
		{"last use", "func f() { x, y := g(), g(); x = y; print(x) }", "x = y>_ = y; | print(x)>_ = x; "},
		{"defer", "func f() { defer g() }", "~defer g()| defer g()>g()"},
		{"block", "func f() { if h() { g(); g() } }", "~if h() { g(); g() }| h()>!(h())| ~g()| ~g()"},
		{"fields", "func f() { use(point{x: k, y: k}) }", "~use(point{x: k, y: k})| ~x: k, | ~, y: k"},
		{"halves", "func f() bool { return h() && !l }", "return h() && !l>_ = h() && !l; return false| h() && !l>h()| h() && !l>!l| !l>l"},
		{"comparison", "func f(n int) { for n < k { n++ } }", "<><=| <>>=| ~n++"},
		{"case", "func f(n int) { switch n { case k, 7: g() } }", "~switch n { case k, 7: g() }| ~case k, 7: g()| ~k, | ~, 7| 7>6| 7>8| ~g()"},
		{"arguments", "func f(a, b int, s string) { three(a, b, s) }", "~three(a, b, s)| a, b>b, a"},
		{"call", "func f(p *point) *point { return p.same().same() }", "return p.same().same()>_ = p.same().same(); return nil| p.same().same()>p.same()| p.same()>p"},
		{"error", "func f() (int, error) { return two() }", "return two()>cut0, cut1 := two(); _ = cut0; return 0, cut1| return two()>cut0, cut1 := two(); _ = cut1; return cut0, nil"},
		{"zero", "func f() (point, bool) { return p, false }", "return p>_ = p; return *new(point)| false>true"},
		{"numbers", "const n = 10 * q + 3", "10 * q>10| 10 * q>q| +>-| 3>2| 3>4"},
		{"texts", "var s = \"a\" + t", "\"a\" + t>\"a\"| \"a\" + t>t"},
		{"choice", "func f(a int) { print(max(a, k)) }", "~print(max(a, k))| max>min| ~a, | ~, k"},
	}
	files := map[string]string{"common.go": `package example
const q = 4
type point struct{ x, y int }
var k, l, t, p = 1, true, "t", point{}
func g() int { return 1 }
func h() bool { return true }
func use(point) {}
func (p *point) same() *point { return p }
func two() (int, error) { return 1, nil }
func three(a, b int, s string) {}
`}
	for i, test := range tests {
		files[fmt.Sprintf("f%02d.go", i)] = "package example\n" + regexp.MustCompile(`\bfunc f\b|\bconst n\b|\bvar s\b`).ReplaceAllString(test.code, fmt.Sprintf("${0}%d", i)) + "\n"
	}
	root := repository(t, files)
	wanted := map[string][]lines{}
	for i := range tests {
		wanted[filepath.Join(root, fmt.Sprintf("f%02d.go", i))] = []lines{{2, 2}}
	}
	cuts, err := find(t.Context(), root, wanted)
	if err != nil {
		t.Fatal(err)
	}
	for i, test := range tests {
		var got []string
		for _, c := range cuts {
			was := c.file.text[c.from:c.to]
			switch {
			case c.file.shown != fmt.Sprintf("f%02d.go", i):
			case c.text == "":
				got = append(got, "~"+was)
			default:
				got = append(got, was+">"+c.text)
			}
		}
		want := strings.Split(test.want, "| ")
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %s\n got %s\nwant %s", test.name, test.code, strings.Join(got, "| "), strings.Join(want, "| "))
		}
	}
}

// A cut survives if no test reaches it, or none fails. Constants, and functions
// that recover, are built one by one.
func TestTry(t *testing.T) {
	t.Parallel()
	root := repository(t, map[string]string{
		"a.go": `package example

const limit = 3

func allowed(n int) bool {
	return n < limit
}

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
	if allowed(9) || !allowed(2) {
		t.Error(9, 2)
	}
}

func TestSafe(t *testing.T) {
	if safe(func() {}) || !safe(func() { panic(1) }) {
		t.Error("safe")
	}
}
`,
	})
	cuts, err := find(t.Context(), root, map[string][]lines{filepath.Join(root, "a.go"): {everything}})
	if err != nil {
		t.Fatal(err)
	}
	if err := try(t.Context(), root, cuts); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, c := range cuts {
		got[fmt.Sprintf("%s>%s, met %d", c.file.text[c.from:c.to], c.text, len(c.met))] = c.noticed
	}
	want := map[string]bool{
		"3>2, met 1": true, "3>4, met 1": false,
		"<>>=, met 1": true, "<><=, met 1": false, "return n < limit>_ = n < limit; return false, met 1": true,
		"defer func() { failed = recover() != nil }()>, met 1":                                       true,
		"defer func() { failed = recover() != nil }()>func() { failed = recover() != nil }(), met 1": true,
		"failed = recover() != nil>, met 1":                                                          true,
		"!=>==, met 1":                                                                               true,
		"f()>, met 1":                                                                                true,
		"false>true, met 1":                                                                          false,
		`return len("x")>_ = len("x"); return 0, met 0`:                                              false,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestHunks(t *testing.T) {
	t.Parallel()
	got := hunks("--- a/x.go\n+++ b/x.go\n@@ -1 +2 @@\n-a\n+b\n@@ -5,0 +7,3 @@ func f\n+c\n--- a/y.go\n+++ b/y.go\n@@ -1,2 +0,0 @@\n")
	if want := map[string][]lines{"x.go": {{2, 2}, {7, 9}}}; !reflect.DeepEqual(got, want) {
		t.Errorf("hunks are %v, want %v", got, want)
	}
}
