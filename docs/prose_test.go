package docs

import (
	"fmt"
	"go/parser"
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

const (
	widestProse   = 100 // columns of a line in Markdown
	widestComment = 80  // characters of a comment's line in Go, from its // on
)

// banned are the words that CONTRIBUTING.md replaces.
var banned = []struct {
	phrase  *regexp.Regexp // in text of lower case
	instead string
}{
	{regexp.MustCompile(`\bover(?:taken|took)\b`), "stale"},
	{regexp.MustCompile(`\bsettled\b`), "completed, or released"},
	{regexp.MustCompile(`\b(?:not to|cannot) be had\b`), "unavailable"},
	{regexp.MustCompile(`\bg(?:ive|ives|ave|iven|iving) back\b`), "return, or release"},
	{regexp.MustCompile(`\b\w+ (?:is|are) no [a-z]+`), "is not a"},
	{regexp.MustCompile(`\bwhoever\b`), "who it is"},
	{regexp.MustCompile(`\bstands? in (?:for|it|its|one|the|this)\b`), "is in, or replaces"},
	{regexp.MustCompile(`\bas (?:it is|they are)(?:[.,;:)"]|$)`), "unchanged"},
	{regexp.MustCompile(`\bwhy so\b`), "why"},
	{regexp.MustCompile(`lambdalock: (?:took over|done|overtaken|record failed|work failed)\b`), "the text of an Outcome"},
}

// allowed are uses of banned words that are right.
var allowed = regexp.MustCompile(`^there (?:is|are) no |\bno (?:longer|more|less|other)$`)

// identifier is a name of code, which the changelog may quote although it is
// gone.
var identifier = regexp.MustCompile("`[A-Za-z.]+`")

// findBanned returns what is wrong with the words of a text.
func findBanned(text string) []string {
	var found []string
	text = identifier.ReplaceAllString(text, "")
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, b := range banned {
		for _, m := range b.phrase.FindAllString(text, -1) {
			if !allowed.MatchString(m) {
				found = append(found, fmt.Sprintf("%q: write %s", m, b.instead))
			}
		}
	}
	return found
}

func TestFindBanned(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want int
	}{
		"a word":                   {"An event that was overtaken is skipped.", 1},
		"over two lines":           {"a string\nthat is no\nJMESPath", 1},
		"two":                      {"Whoever asks gives it; what stands in the row stays as it is.", 3},
		"part of a word":           {"unsettled", 0},
		"right uses":               {"There is no index. It is no longer held, as it is completed.", 0},
		"the text of an outcome":   {"lambdalock: taken_over", 0},
		"an identifier":            {"the old `Overtaken`", 0},
		"a text that is no longer": {"lambdalock: took over", 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if found := findBanned(test.text); len(found) != test.want {
				t.Errorf("found %q, want %d", found, test.want)
			}
		})
	}
}

// TestMarkdown checks words and line widths. Tables, code, and lines with a
// link may be wider.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	for name, text := range documents(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report(t, proseProblems(text))
		})
	}
}

func proseProblems(text string) []string {
	var problems []string
	for _, p := range paragraphs(text) {
		for i, line := range strings.Split(p.text, "\n") {
			wide := utf8.RuneCountInString(line) > widestProse && !strings.HasPrefix(line, "|")
			if wide && !strings.Contains(line, "://") && !strings.Contains(line, "](") {
				problems = append(problems, fmt.Sprintf("line %d has more than %d columns", p.line+i, widestProse))
			}
		}
		for _, found := range findBanned(p.text) {
			problems = append(problems, fmt.Sprintf("line %d: %s", p.line, found))
		}
	}
	return problems
}

// passage is text that belongs together, and the line where it begins.
type passage struct {
	line int
	text string
}

// paragraphs returns the text of a document between blank lines and code
// blocks.
func paragraphs(text string) []passage {
	var all []passage
	code, open := false, false
	for i, line := range strings.Split(text, "\n") {
		switch fence := strings.HasPrefix(strings.TrimSpace(line), "```"); {
		case fence:
			code, open = !code, false
		case code || line == "":
			open = false
		case open:
			all[len(all)-1].text += "\n" + line
		default:
			all, open = append(all, passage{i + 1, line}), true
		}
	}
	return all
}

// TestShellBlocksHaveNoComments: people paste them, and an interactive zsh, the
// shell of macOS, takes # for a word: a comment becomes arguments.
func TestShellBlocksHaveNoComments(t *testing.T) {
	t.Parallel()
	block, comment := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$"), regexp.MustCompile(`(?m)^(?:.*\s)?#(?:\s.*)?$`)
	for name, text := range documents(t) {
		for _, m := range block.FindAllStringSubmatch(text, -1) {
			for _, line := range comment.FindAllString(m[1], -1) {
				t.Errorf("%s: put the comment outside of the block: %s", name, line)
			}
		}
	}
}

// TestGoWords checks comments and strings.
func TestGoWords(t *testing.T) {
	t.Parallel()
	var problems []string
	for _, name := range files(t, ".go") {
		if name == "../docs/prose_test.go" { // says what it bans
			continue
		}
		for _, p := range passages(read(t, name)) {
			for _, found := range findBanned(p.text) {
				problems = append(problems, fmt.Sprintf("%s:%d: %s", name, p.line, found))
			}
		}
	}
	report(t, problems)
}

// passages returns the strings of a Go file, and its comments, joined where
// they are on lines that follow each other.
func passages(source string) []passage {
	var (
		all  []passage
		s    scanner.Scanner
		last = -1 // line of the comment before
	)
	file := token.NewFileSet().AddFile("", -1, len(source))
	s.Init(file, []byte(source), nil, scanner.ScanComments)
	for {
		at, kind, text := s.Scan()
		line := file.Line(at)
		switch kind {
		case token.EOF:
			return all
		case token.STRING:
			all, last = append(all, passage{line, text}), -1
		case token.COMMENT:
			text = strings.TrimPrefix(text, "//")
			if line == last+1 {
				all[len(all)-1].text += "\n" + text
			} else {
				all = append(all, passage{line, text})
			}
			last = line
		}
	}
}

// exempt are comments that may be wider: those with a URL, with a tab (tables
// and code), and with an instruction to a tool.
var exempt = regexp.MustCompile(`://|^//(?:\t|go:|nolint)`)

// TestGoCommentWidth checks comments that have a line of their own, except what
// an example prints.
func TestGoCommentWidth(t *testing.T) {
	t.Parallel()
	var problems []string
	for _, name := range files(t, ".go") {
		fset, source := token.NewFileSet(), read(t, name)
		file := expect.Value(parser.ParseFile(fset, name, source, parser.ParseComments))(t)
		lines := strings.Split(source, "\n")
		for _, group := range file.Comments {
			for _, c := range group.List {
				if strings.HasPrefix(c.Text, "// Output:") || strings.HasPrefix(c.Text, "// Unordered output:") {
					break
				}
				line := fset.Position(c.Pos()).Line
				alone := strings.TrimSpace(lines[line-1]) == c.Text
				if alone && utf8.RuneCountInString(c.Text) > widestComment && !exempt.MatchString(c.Text) {
					problems = append(problems, fmt.Sprintf("%s:%d has more than %d characters", name, line, widestComment))
				}
			}
		}
	}
	report(t, problems)
}

func report(t *testing.T, problems []string) {
	t.Helper()
	if len(problems) > 0 {
		t.Error(strings.Join(problems, "\n"))
	}
}
