package docs

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCommandsRunTests checks every `go test -run '…' DIR` of a document: DIR
// is a package that has each of these tests.
func TestCommandsRunTests(t *testing.T) {
	t.Parallel()
	command := regexp.MustCompile("`go (?:-C (\\S+) )?test -run '([^']+)' (\\.\\S*)`")
	found := 0
	for name, text := range documents(t) {
		for _, m := range command.FindAllStringSubmatch(text, -1) {
			found++
			folder := filepath.Join("..", m[1], m[3])
			tests, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			var code strings.Builder
			for _, path := range tests {
				code.WriteString(read(t, path))
			}
			for test := range strings.SplitSeq(m[2], `\|`) { // as a table needs it
				if !strings.Contains(code.String(), "func "+test+"(t *testing.T)") {
					t.Errorf("%s: %s has no %s", name, folder, test)
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("found %d commands", found)
	}
}

// TestReportsOfOthers checks that VERIFICATION.md lists the reports about other
// libraries that tests repeat, and no others.
func TestReportsOfOthers(t *testing.T) {
	t.Parallel()
	report := regexp.MustCompile(`[\w-]*#\d+`)
	listed, repeated := map[string]bool{}, map[string]bool{}
	for row := range strings.Lines(section(read(t, "VERIFICATION.md"), "What went wrong elsewhere")) {
		for _, m := range report.FindAllString(strings.Split(row, " | ")[0], -1) {
			listed[m] = true
		}
	}
	for _, path := range files(t, ".go") {
		if filepath.Base(path) == "peers_test.go" {
			for _, m := range report.FindAllString(read(t, path), -1) {
				repeated[m] = true
			}
		}
	}
	if !maps.Equal(listed, repeated) || len(listed) < 14 {
		t.Errorf("VERIFICATION.md lists %q, but the tests repeat %q", slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(repeated)))
	}
}
