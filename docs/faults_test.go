package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// faults are numbered from F1 on. The number of a feature that is gone is not
// given again.
const faults, gone = 65, 54

// TestEveryFaultHasATest reads the faults that the tests of all modules name in
// comments, and checks that the table in PROMISES.md has each fault, and that
// the tests in a row name one of its faults. With -v it prints the tests by
// fault.
func TestEveryFaultHasATest(t *testing.T) {
	t.Parallel()
	byFault, byTest := map[int][]string{}, map[string]map[int]bool{}
	for _, path := range files(t, ".go") {
		if !strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(path, "../lock/locktest/") {
			continue
		}
		for name, numbers := range faultsOf(t, path) {
			if byTest[name] == nil {
				byTest[name] = map[int]bool{}
			}
			maps.Copy(byTest[name], numbers)
			for n := range numbers {
				byFault[n] = append(byFault[n], strings.TrimPrefix(path, "../")+" "+name)
			}
		}
	}
	rows := map[int]bool{}
	code := regexp.MustCompile("`(Test\\w+)`")
	for row := range strings.Lines(section(read(t, "PROMISES.md"), "Faults")) {
		if !strings.HasPrefix(row, "|") {
			continue
		}
		numbers := numbersIn(strings.Split(row, " | ")[0])
		maps.Copy(rows, numbers)
		tests := code.FindAllStringSubmatch(row, -1)
		if len(numbers) > 0 && len(tests) == 0 {
			t.Errorf("no test shows %s in PROMISES.md", label(numbers))
		}
		for _, m := range tests {
			if len(numbers) > 0 && !overlaps(numbers, byTest[m[1]]) {
				t.Errorf("%s does not name %s of its row in PROMISES.md", m[1], label(numbers))
			}
		}
	}
	for n := 1; n <= faults; n++ {
		if n == gone {
			continue
		}
		if len(byFault[n]) == 0 {
			t.Errorf("no test names F%d", n)
		}
		if !rows[n] {
			t.Errorf("the table in PROMISES.md lacks F%d", n)
		}
		if testing.Verbose() {
			slices.Sort(byFault[n])
			t.Logf("F%d: %s", n, strings.Join(byFault[n], ", "))
		}
	}
	for n := range byFault {
		if n < 1 || n > faults || n == gone {
			t.Errorf("%q name F%d, which does not exist", byFault[n], n)
		}
	}
}

// faultsOf returns the faults that each function of a file names, within it or
// in the comment at its head. Checks of locktest count under their own names.
func faultsOf(t *testing.T, path string) map[string]map[int]bool {
	t.Helper()
	fset := token.NewFileSet()
	file := expect.Value(parser.ParseFile(fset, path, nil, parser.ParseComments))(t)
	found := map[string]map[int]bool{}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(f.Name.Name, "Test") && !strings.HasPrefix(f.Name.Name, "Fuzz") && strings.HasSuffix(path, "_test.go") {
			continue
		}
		begin := f.Pos()
		if f.Doc != nil {
			begin = f.Doc.Pos()
		}
		for _, c := range file.Comments {
			for _, line := range c.List {
				if line.Pos() < begin || fset.Position(line.Pos()).Line > fset.Position(f.End()).Line {
					continue
				}
				if numbers := numbersIn(line.Text); len(numbers) > 0 {
					if found[f.Name.Name] == nil {
						found[f.Name.Name] = map[int]bool{}
					}
					maps.Copy(found[f.Name.Name], numbers)
				}
			}
		}
	}
	return found
}

var fault = regexp.MustCompile(`\bF([1-9]\d?)(?:(?: to |–)F([1-9]\d?))?\b`)

// numbersIn returns the faults in a text, such as "F1 to F3, F7".
func numbersIn(text string) map[int]bool {
	numbers := map[int]bool{}
	for _, m := range fault.FindAllStringSubmatch(text, -1) {
		first, _ := strconv.Atoi(m[1])
		last := first
		if m[2] != "" {
			last, _ = strconv.Atoi(m[2])
		}
		for n := first; n <= last; n++ {
			numbers[n] = true
		}
	}
	return numbers
}

func overlaps(a, b map[int]bool) bool {
	for n := range a {
		if b[n] {
			return true
		}
	}
	return false
}

func label(numbers map[int]bool) string {
	var all []string
	for _, n := range slices.Sorted(maps.Keys(numbers)) {
		all = append(all, "F"+strconv.Itoa(n))
	}
	return strings.Join(all, " or ")
}

func TestNumbersIn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]int{
		"// F1 to F3, F21":       {1, 2, 3, 21},
		"| F5, F6 answer lost":   {5, 6},
		"| F26–F28 no key":       {26, 27, 28},
		"// AF1, F100, UTF8, F0": nil,
	} {
		if got := slices.Sorted(maps.Keys(numbersIn(text))); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
