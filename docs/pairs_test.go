package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPairsAreListed: the table of pairs in SOURCES.md has those that keyfuncs
// tests, with a row for each key function and a link for each pair.
func TestPairsAreListed(t *testing.T) {
	t.Parallel()
	source := read(t, "../keyfuncs/pairs_test.go")
	constants := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\t(\w+)\s+(?:relation )?= "([^"]*)"`).FindAllStringSubmatch(source, -1) {
		constants[m[1]] = m[2]
	}
	relations := []string{"one event", "two events", "two events, in order"}
	var keys []string
	cells := map[string]string{}
	pairs := regexp.MustCompile("(?m)^\t{\"([^\"]*)\", \"([^\"]*)\", (\\w+), (?:(\\w+) \\+ )?\"([^\"]*)\", ").FindAllStringSubmatch(source, -1)
	if n := strings.Count(source, "\n\t{\"`"); n < 50 || len(pairs) != n {
		t.Fatalf("found %d of %d pairs", len(pairs), n)
	}
	for _, m := range pairs {
		if !slices.Contains(keys, m[1]) {
			keys = append(keys, m[1])
		}
		cell := m[1] + constants[m[3]]
		if cells[cell] != "" {
			cells[cell] += "; "
		}
		cells[cell] += fmt.Sprintf("[%s](%s)", m[2], constants[m[4]]+m[5])
	}
	want := []string{"| key function | " + strings.Join(relations, " | ") + " |", "|---|---|---|---|"}
	for _, key := range keys {
		row := "| " + key + " |"
		for _, r := range relations {
			row += strings.TrimRight(" "+cells[key+r], " ") + " |"
		}
		want = append(want, row)
	}
	_, section, _ := strings.Cut(read(t, "SOURCES.md"), "\n### One event or two\n")
	section, _, _ = strings.Cut(section, "\n### ")
	var got []string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "|") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the table has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
