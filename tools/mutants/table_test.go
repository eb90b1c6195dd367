package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestTable checks that every bug can still be planted, and that the tests
// which must notice exist.
func TestTable(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := load(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) == 0 || len(rows) > 200 {
		t.Errorf("%d rows, want at most 200: take out what another row's test would notice too", len(rows))
	}
	seen := map[string]string{}
	for _, r := range rows {
		if err := r.check(root); err != nil {
			t.Errorf("%s: %v", r.at, err)
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

// TestHangIsNotNoticed: a bug that makes the tests hang is not one that they
// notice, whatever else fails by then; nor is one that does not compile.
func TestHangIsNotNoticed(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]result{
		"--- FAIL: TestA (0.01s)\n": {outcome: noticed, why: "TestA"},
		"--- FAIL: TestA (0.01s)\npanic: test timed out after 4m0s\n\trunning tests:\n\t\tTestB/c (4m0s)\n\ngoroutine 1": {outcome: hung, why: ": TestB/c"},
		"./a.go:3:4: undefined: x\nFAIL\ta [build failed]\n":                                                             {outcome: broken, why: "compile"},
	} {
		res := judge(&row{tests: "TestA|TestB"}, []byte(output), false)
		if res.outcome != want.outcome || !strings.Contains(res.why, want.why) {
			t.Errorf("%s, %q after %q, want %s", res.outcome, res.why, output, want.outcome)
		}
	}
	if res := judge(&row{}, []byte("ok\n"), true); res.outcome != survived {
		t.Errorf("%s after a pass", res.outcome)
	}
}
