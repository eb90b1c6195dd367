package docs

import (
	"regexp"
	"slices"
	"testing"
)

// TestRowAttributes: STORES.md explains every attribute of a row, and no other.
func TestRowAttributes(t *testing.T) {
	t.Parallel()
	defined := firstColumn(t, "../stores/dynamostore/doc.go", `(?m)^//\t(\w+) +[SNBM] `)
	explained := firstColumn(t, "STORES.md", "(?m)^\\| `(\\w+)` .*\\| (?:String|Number|Map|Binary) \\|")
	if !slices.Equal(explained, defined) {
		t.Errorf("STORES.md explains %q, but dynamostore defines %q", explained, defined)
	}
}

// firstColumn returns what pattern captures in a file, sorted.
func firstColumn(t *testing.T, name, pattern string) []string {
	t.Helper()
	var column []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(read(t, name), -1) {
		column = append(column, m[1])
	}
	slices.Sort(column)
	return column
}
