package docs

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

var (
	linked   = regexp.MustCompile(`\](?:\([^)]+\)|\[[a-z0-9-]+\])`)
	external = regexp.MustCompile(`https?://[^\s)>"]+`)
	// versioned is the address of a tag, of a release's page, or of a commit.
	versioned = regexp.MustCompile(`[/@]v?\d+\.\d+[\w.-]*(?:/|$)|/[0-9a-f]{40}/`)
)

// TestComparisonHasSources: COMPARISON.md says nothing about another tool
// without a source, but for what was measured.
func TestComparisonHasSources(t *testing.T) {
	t.Parallel()
	text := read(t, "COMPARISON.md")
	text = regexp.MustCompile(`(?s)\n## Measured\n.*?(\n\[[a-z0-9-]+\]: )`).ReplaceAllString(text, "$1")
	report(t, unsourced(text))
	if n := len(claims(text)); n < 120 {
		t.Errorf("found %d claims: is claims right?", n)
	}
}

func TestUnsourced(t *testing.T) {
	t.Parallel()
	const date = "AWS's pages, which have no versions, on 2026-11-25.\n\n"
	tests := map[string]struct {
		text string
		want int
	}{
		"a cell without a link":       {date + "| tool | case |\n|---|---|\n| flock | waits |\n", 1},
		"a cell that does not apply":  {date + "| tool | case |\n|---|---|\n| flock | — |\n", 0},
		"a cell with a link":          {date + "| tool | case |\n|---|---|\n| flock | [waits][a] |\n", 0},
		"an item without a link":      {date + "- It waits.\n- It [waits][a],\n  and waits.\n", 1},
		"a link over two lines":       {date + "- It waits\n  [for ever][a].\n", 0},
		"a branch":                    {date + "[a]: https://github.com/a/b/blob/main/v2/c.go\n", 1},
		"the latest documentation":    {date + "[a]: https://developer.hashicorp.com/consul/commands/lock\n", 1},
		"inline, without a version":   {date + "- It [waits](https://example.com/lock).\n", 1},
		"a tag":                       {date + "[a]: https://github.com/a/b/blob/v2.1.0/v2/c.go#L1\n", 0},
		"a tag of a module":           {date + "[a]: https://github.com/a/b/blob/c/v1.2.3/c/d.go\n", 0},
		"a commit":                    {date + "[a]: https://github.com/a/b/blob/4e5029064fb9ab2627fcac3df1ba2909b540c796/c.go\n", 0},
		"half a commit":               {date + "[a]: https://github.com/a/b/blob/4e5029064fb9/c.go\n", 1},
		"documentation of a version":  {date + "[a]: https://developer.hashicorp.com/consul/commands/v1.10.x/lock\n", 0},
		"AWS has no versions":         {date + "[a]: https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html\n", 0},
		"AWS, and nobody says when":   {"[a]: https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html\n", 1},
		"a host that pretends to be":  {date + "[a]: https://docs.aws.amazon.com.example.org/lambda.html\n", 1},
		"a version only in the query": {date + "[a]: https://example.com/lock?version=1.2\n", 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if found := unsourced(test.text); len(found) != test.want {
				t.Errorf("found %q, want %d", found, test.want)
			}
		})
	}
}

// unsourced returns the claims of a text that have no link, and the links that
// name no version.
func unsourced(text string) []string {
	var problems []string
	for _, claim := range claims(text) {
		if !linked.MatchString(claim) {
			problems = append(problems, fmt.Sprintf("no link says so: %q", claim))
		}
	}
	dated := regexp.MustCompile(`AWS's pages[^.]* \d{4}-\d\d-\d\d\.`).MatchString(text)
	for _, url := range external.FindAllString(text, -1) {
		path, _, _ := strings.Cut(url, "?")
		path, _, _ = strings.Cut(path, "#")
		aws := dated && strings.HasPrefix(url, "https://docs.aws.amazon.com/")
		if !aws && !versioned.MatchString(path) {
			problems = append(problems, "no version: "+url)
		}
	}
	return problems
}

// claims returns the cells of the tables, without the first row and the first
// column and those that do not apply, and the items of the lists.
func claims(text string) []string {
	var all []string
	for _, p := range paragraphs(text) {
		if strings.HasPrefix(p.text, "|") {
			rows := strings.Split(p.text, "\n")
			for _, row := range rows[min(2, len(rows)):] {
				for _, cell := range strings.Split(strings.Trim(row, "| "), " | ")[1:] {
					if cell != "—" {
						all = append(all, cell)
					}
				}
			}
			continue
		}
		all = append(all, strings.Split("\n"+p.text, "\n- ")[1:]...)
	}
	return all
}
