// Package docs checks that the documents point at what is there.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// documents are those that speak of the code.
func documents(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"../*.md", "*.md", "../examples/*.md", "../sam-local/*.md", "../infra/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			all[name] = read(t, name)
		}
	}
	return all
}

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for name, text := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (strings.HasSuffix(path, "_test.go") || strings.Contains(path, "locktest")) {
			code.WriteString(read(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Example)[A-Za-z_]+)`|locktest`? \"([a-z ]+)\"")
	for name, text := range documents(t) {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if m[1] != "" && !strings.Contains(code.String(), "func "+m[1]+"(") {
				t.Errorf("%s names %s, which does not exist", name, m[1])
			}
			if m[2] != "" && !strings.Contains(code.String(), `"`+m[2]+`":`) {
				t.Errorf("%s names locktest %q, which does not exist", name, m[2])
			}
		}
	}
}

// TestMakeTargetsExist: a command in the README that does not work is worse than none.
func TestMakeTargetsExist(t *testing.T) {
	t.Parallel()
	targets := read(t, "../Makefile")
	for name, text := range documents(t) {
		for _, m := range regexp.MustCompile("`?make ([a-z]+)").FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[0], "`") && !strings.Contains(targets, "\n"+m[1]+":") {
				t.Errorf("%s names make %s, which does not exist", name, m[1])
			}
		}
	}
}

// TestEverySourceIsListed: whoever looks for a source finds it by name, and finds all
// that there is.
func TestEverySourceIsListed(t *testing.T) {
	t.Parallel()
	table := read(t, "SOURCES.md")
	exported := regexp.MustCompile(`(?m)^func ([A-Z]\w*)`)
	for _, pattern := range []string{"../keyfuncs/*.go", "../middleware/records.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no files %s: %v", pattern, err)
		}
		for _, file := range files {
			for _, m := range exported.FindAllStringSubmatch(read(t, file), -1) {
				if !strings.HasSuffix(file, "_test.go") && !regexp.MustCompile("`"+m[1]+"\\b").MatchString(table) {
					t.Errorf("SOURCES.md says nothing of %s", m[1])
				}
			}
		}
	}
}
