package docs

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
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
			code := testsIn(t, folder)
			for test := range strings.SplitSeq(m[2], `\|`) { // as a table needs it
				if !strings.Contains(code, "func "+test+"(t *testing.T)") {
					t.Errorf("%s: %s has no %s", name, folder, test)
				}
			}
		}
	}
	if found < 2 {
		t.Errorf("found %d commands", found)
	}
}

// testsIn returns the code of all tests in a folder.
func testsIn(t *testing.T, folder string) string {
	t.Helper()
	paths := expect.Value(filepath.Glob(filepath.Join(folder, "*_test.go")))(t)
	var code strings.Builder
	for _, path := range paths {
		code.WriteString(read(t, path))
	}
	return code.String()
}

// TestEveryStoreHasItsTests checks that package lock and every store have the
// tests that TESTING.md names as theirs.
func TestEveryStoreHasItsTests(t *testing.T) {
	t.Parallel()
	stores := []string{"memstore", "dynamostore", "redisstore", "redisstore/redisquorum", "s3store", "azblobstore"}
	named := regexp.MustCompile("`(Test\\w+)` of `lock` and of every store").FindAllStringSubmatch(read(t, "TESTING.md"), -1)
	if len(named) == 0 {
		t.Errorf("TESTING.md names %q", named)
	}
	for _, m := range named {
		folders := []string{"../lock"}
		for _, store := range stores {
			folders = append(folders, "../stores/"+store)
		}
		for _, folder := range folders {
			if !strings.Contains(testsIn(t, folder), "func "+m[1]+"(t *testing.T)") {
				t.Errorf("%s has no %s", folder, m[1])
			}
		}
	}
}

// TestReportsOfOthers checks that TESTING.md lists the reports about other
// libraries that tests repeat, and no others.
func TestReportsOfOthers(t *testing.T) {
	t.Parallel()
	report := regexp.MustCompile(`[\w-]*#\d+`)
	listed, repeated := map[string]bool{}, map[string]bool{}
	for row := range strings.Lines(section(read(t, "TESTING.md"), "What went wrong elsewhere")) {
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
		t.Errorf("TESTING.md lists %q, but the tests repeat %q", slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(repeated)))
	}
}
