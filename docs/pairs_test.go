package docs

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestPairsAreListed: the table of pairs in SOURCES.md is the one that
// keyfuncs tests.
func TestPairsAreListed(t *testing.T) {
	t.Parallel()
	source := read(t, "../keyfuncs/pairs_test.go")
	constants := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\t(\w+)\s+(?:relation )?= "([^"]*)"`).FindAllStringSubmatch(source, -1) {
		constants[m[1]] = m[2]
	}
	want := []string{"| key function | two deliveries | are | evidence |", "|---|---|---|---|"}
	row := regexp.MustCompile("(?m)^\t{\"([^\"]*)\", \"([^\"]*)\", (\\w+), (?:(\\w+) \\+ )?\"([^\"]*)\", ")
	for _, m := range row.FindAllStringSubmatch(source, -1) {
		url, what := constants[m[4]]+m[5], "page"
		if strings.HasPrefix(url, "https://github.com/") {
			what = "source"
		}
		want = append(want, fmt.Sprintf("| %s | %s | %s | [%s](%s) |", m[1], m[2], constants[m[3]], what, url))
	}
	if n := strings.Count(source, "\n\t{\"`"); n < 50 || len(want) != n+2 {
		t.Fatalf("found %d of %d pairs", len(want)-2, n)
	}
	_, section, _ := strings.Cut(read(t, "SOURCES.md"), "\n### One event or two\n")
	section, _, _ = strings.Cut(section, "\n### ")
	var got []string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "|") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("row %d of the table differs, or is missing: it has\n%q\nwant\n%q", i, got[min(i, len(got)):min(i+1, len(got))], want[min(i, len(want)):min(i+1, len(want))])
		}
	}
}
