package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestFactsAreUsed checks that each fact about AWS has a page, the day on which
// it was read, and a test or a declaration that uses it.
func TestFactsAreUsed(t *testing.T) {
	t.Parallel()
	var code []string
	for _, path := range files(t, ".go") {
		code = append(code, read(t, path))
	}
	rows := 0
	for row := range strings.Lines(section(read(t, "PROMISES.md"), "Facts about AWS")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "| "), " | ")
		if !strings.HasPrefix(row, "| ") || cells[0] == "fact" {
			continue
		}
		rows++
		if len(cells) != 4 || !strings.Contains(cells[1], "](https://") {
			t.Errorf("no page in %s", row)
			continue
		}
		if day, err := time.Parse(time.DateOnly, cells[2]); err != nil || day.Year() < 2026 {
			t.Errorf("%q is not a day, in %s", cells[2], row)
		}
		name := strings.Trim(cells[3], "`")
		declares := regexp.MustCompile(`(?m)^(func |\t?)` + name + `(\(|\[| +=)`)
		if !slices.ContainsFunc(code, func(source string) bool { return strings.Contains(source, name) && declares.MatchString(source) }) {
			t.Errorf("nothing declares %s, which uses the fact that %s", name, cells[0])
		}
	}
	if rows < 10 {
		t.Errorf("found %d facts", rows)
	}
}
