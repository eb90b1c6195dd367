package main

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

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

// load reads the rows of every table in a folder.
func load(dir string) ([]row, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var all []row
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		rows, err := parse(filepath.Base(name), string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return all, nil
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

// check reports why the bug could not be planted, or would not be noticed.
func (r *row) check(root string) error {
	if _, err := r.planted(root); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(r.in), "*_test.go"))
	if err != nil {
		return err
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		all.Write(text)
	}
	for test := range strings.SplitSeq(r.tests, "|") {
		if !strings.Contains(all.String(), "\nfunc "+test+"(") {
			return fmt.Errorf("%s has no test %s", r.in, test)
		}
	}
	return nil
}

// planted returns the file with the bug.
func (r *row) planted(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(r.file)))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), r.old); n != 1 {
		return "", fmt.Errorf("the text to replace is %d times in %s: %q", n, r.file, r.old)
	}
	return strings.Replace(string(text), r.old, r.new, 1), nil
}
