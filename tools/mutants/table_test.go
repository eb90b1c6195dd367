package mutants

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var root, _ = filepath.Abs("../..")

// row is a bug to plant.
type row struct {
	at       string // where the row is, such as lock.txt:12
	file     string // from the root of the repository
	in       string // the folder of the tests
	tests    string // those that must notice, with | between them
	breaks   string // the promise or the fault; see docs/PROMISES.md
	bug      string // what the code then does
	old, new string // the text, which the file must have once, and what replaces it
}

// load reads the rows of every table.
func load(t *testing.T) (all []row) {
	t.Helper()
	names, _ := filepath.Glob("*.txt")
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := parse(name, string(text))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rows...)
	}
	return all
}

// head matches the first line of a row: file, folder of the tests, tests, what
// is broken, and the bug.
var head = regexp.MustCompile(`^(\S+) (?:(\S+):)?(Test\w*(?:\|Test\w*)*) ([^:]+): (.+)$`)

// parse reads a table. Its first lines describe its form.
func parse(name, text string) (rows []row, err error) {
	var r *row // that the lines belong to; nil between two rows
	var last byte
	for i, line := range strings.Split(text, "\n") {
		wrong := func(what string) error { return fmt.Errorf("%s:%d: %s: %q", name, i+1, what, line) }
		switch {
		case line == "":
			r = nil
		case r == nil && line[0] == '#':
		case r == nil:
			m := head.FindStringSubmatch(line)
			if m == nil {
				return nil, wrong("not the first line of a row")
			}
			rows = append(rows, row{
				at: fmt.Sprintf("%s:%d", name, i+1), file: m[1], in: cmp.Or(m[2], path.Dir(m[1])), tests: m[3], breaks: m[4], bug: m[5],
			})
			r, last = &rows[len(rows)-1], 0
		case line[0] == '-' && last != '+':
			r.old, last = add(r.old, line, last), '-'
		case line[0] == '+' && last != 0:
			r.new, last = add(r.new, line, last), '+'
		default:
			return nil, wrong("neither the old text nor the new one")
		}
	}
	for _, r := range rows {
		if r.old == "" || r.old == r.new {
			return nil, fmt.Errorf("%s: the bug changes nothing", r.at)
		}
	}
	return rows, nil
}

// add adds a line to a text. last is how the line before began.
func add(text, line string, last byte) string {
	if last == line[0] {
		text += "\n"
	}
	return text + strings.TrimPrefix(line[1:], " ")
}

// planted returns the file with the bug.
func (r *row) planted() (string, error) {
	text, err := os.ReadFile(filepath.Join(root, r.file))
	if n := strings.Count(string(text), r.old); err == nil && n != 1 {
		err = fmt.Errorf("the text to replace is %d times in %s: %q", n, r.file, r.old)
	}
	return strings.Replace(string(text), r.old, r.new, 1), err
}

// TestTable checks that every bug can still be planted, and that the tests
// which must notice exist.
func TestTable(t *testing.T) {
	t.Parallel()
	rows, have, seen := load(t), map[string]string{}, map[string]string{}
	if len(rows) == 0 || len(rows) > 200 {
		t.Errorf("%d rows, want at most 200: take out what another row's test would notice too", len(rows))
	}
	for _, r := range rows {
		if _, err := r.planted(); err != nil {
			t.Errorf("%s: %v", r.at, err)
		}
		if have[r.in] == "" {
			files, _ := filepath.Glob(filepath.Join(root, r.in, "*_test.go"))
			for _, file := range files {
				text, _ := os.ReadFile(file)
				have[r.in] += string(text)
			}
		}
		for test := range strings.SplitSeq(r.tests, "|") {
			if !strings.Contains(have[r.in], "\nfunc "+test+"(") {
				t.Errorf("%s: %s has no test %s", r.at, r.in, test)
			}
		}
		if same := r.file + r.old + r.new; seen[same] != "" {
			t.Errorf("%s: the same as %s", r.at, seen[same])
		} else {
			seen[same] = r.at
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	rows, err := parse("a.txt", `# A comment.

lock/a.go TestA|TestB P1, F2: everybody: gets the lock
- if ok {
+ if true {

lock/b.lua stores/x:TestC F3: a line is lost
- --
- 	two
+ 
`)
	want := []row{
		{"a.txt:3", "lock/a.go", "lock", "TestA|TestB", "P1, F2", "everybody: gets the lock", "if ok {", "if true {"},
		{"a.txt:7", "lock/b.lua", "stores/x", "TestC", "F3", "a line is lost", "--\n\ttwo", ""},
	}
	if err != nil || len(rows) != len(want) {
		t.Fatal(rows, err)
	}
	for i := range want {
		if rows[i] != want[i] {
			t.Errorf("%+v, want %+v", rows[i], want[i])
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	const first = "lock/a.go TestA P1: a bug\n"
	for text, want := range map[string]string{
		"lock/a.go a bug\n":          "a.txt:1: not the first line",
		"lock/a.go P1: a bug\n- x\n": "a.txt:1: not the first line",
		first + "x\n":                "a.txt:2: neither",
		first + "+ x\n":              "a.txt:2: neither",
		first + "- x\n+ y\n- z\n":    "a.txt:4: neither",
		first + "- x\n" + first:      "a.txt:3: neither",
		first + "\n- x\n":            "a.txt:3: not the first line",
		first:                        "a.txt:1: the bug changes nothing",
		first + "- x\n+ x\n":         "a.txt:1: the bug changes nothing",
	} {
		if rows, err := parse("a.txt", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %q", text, rows, err, want)
		}
	}
}
