package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestIdentitiesAreListed: the table of who sends a request in GUIDE.md is the
// one that keyfuncs tests.
func TestIdentitiesAreListed(t *testing.T) {
	t.Parallel()
	source := read(t, "../keyfuncs/identity_test.go")
	cell := func(expression string) string {
		for name, text := range constantsIn(source) {
			expression = strings.ReplaceAll(expression, name, `"`+text+`"`)
		}
		return strings.ReplaceAll(strings.Trim(expression, `"`), `" + "`, "")
	}
	want := []string{"| event | who authenticates | in the `Name` | compared | does not count |", "|---|---|---|---|---|"}
	const part = `((?:"[^"]*"|\w+)(?: \+ (?:"[^"]*"|\w+))*)`
	row := regexp.MustCompile(`(?m)^\t\{` + strings.Repeat(part+", ", 5) + `\w+\},$`)
	for _, m := range row.FindAllStringSubmatch(source, -1) {
		want = append(want, strings.ReplaceAll(fmt.Sprintf("| %s | %s | %s | %s | %s |", cell(m[1]), cell(m[2]), cell(m[3]), cell(m[4]), cell(m[5])), "|  |", "| |"))
	}
	_, section, _ := strings.Cut(read(t, "GUIDE.md"), "\n### Who asks\n")
	section, _, _ = strings.Cut(section, "\n### ")
	var got []string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "|") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if len(want) < 12 || !slices.Equal(got, want) {
		t.Errorf("the table has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// constantsIn returns the text constants of a Go file.
func constantsIn(source string) map[string]string {
	constants := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\t(\w+)\s+= "([^"]*)"$`).FindAllStringSubmatch(source, -1) {
		constants[m[1]] = m[2]
	}
	return constants
}
