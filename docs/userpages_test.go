package docs

import (
	"regexp"
	"testing"
)

// TestUsersReadNoTests: a page for users says what happens, and PROMISES.md
// which test shows it.
func TestUsersReadNoTests(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"ASSISTANTS", "GUIDE", "MIGRATION", "OPERATIONS", "SOURCES", "START", "STORES"} {
		for _, name := range regexp.MustCompile("`(?:Test|Example|Fuzz|Benchmark)\\w+`").FindAllString(read(t, page+".md"), -1) {
			t.Errorf("%s.md names %s", page, name)
		}
	}
}
