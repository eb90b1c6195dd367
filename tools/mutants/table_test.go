package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestTable shows that every bug can still be planted: the text to replace is
// in its file, once.
func TestTable(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range table {
		if _, err := write(root, t.TempDir(), m); err != nil {
			t.Errorf("%s: %s: %v", m.file, m.bug, err)
		}
		if m.old == m.new || m.breaks == "" || seen[m.file+m.old+m.new] {
			t.Errorf("%s: %s: the bug changes nothing, is there twice or breaks no promise", m.file, m.bug)
		}
		seen[m.file+m.old+m.new] = true
		if found, _ := filepath.Glob(filepath.Join(root, m.folder(), "*_test.go")); len(found) == 0 {
			t.Errorf("%s: %s: the folder %s has no tests", m.file, m.bug, m.folder())
		}
		for tests := range strings.SplitSeq(m.by, "|") {
			if m.by != "" && !strings.HasPrefix(tests, "Test") {
				t.Errorf("%s: %s: %q is not a test", m.file, m.bug, tests)
			}
		}
	}
}

// TestHangIsNotCaught: a bug that makes the tests hang is not one that they
// notice, whatever else fails by then.
func TestHangIsNotCaught(t *testing.T) {
	for output, want := range map[string]outcome{
		"--- FAIL: TestA (0.01s)\n": caught,
		"--- FAIL: TestA (0.01s)\npanic: test timed out after 4m0s\n\trunning tests:\n\t\tTestB/c (4m0s)\n\ngoroutine 1": hung,
	} {
		r := judge(mutant{by: "TestA|TestB"}, func(string) ([]byte, bool) { return []byte(output), false })
		if r.outcome != want || want == hung && !strings.HasSuffix(r.why, ": TestB/c") {
			t.Errorf("%s, %q after %q, want %s", r.outcome, r.why, output, want)
		}
	}
}
