// Package docs checks the documents: that they name what exists, that their
// code compiles, and that their prose keeps to the rules of CONTRIBUTING.md.
package docs

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

func read(t *testing.T, name string) string {
	t.Helper()
	b := expect.Value(os.ReadFile(name))(t)
	return string(b)
}

// documents returns the Markdown files of the repository by name.
func documents(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range files(t, ".md") {
		all[name] = read(t, name)
	}
	return all
}

// TestLinksLeadSomewhere checks the file of every link and, in a document, the
// heading.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	all := documents(t)
	all["../llms.txt"] = read(t, "../llms.txt")
	link := regexp.MustCompile(`(?:\]\(|src="|srcset=")([^)"#:]*)(?:#([^)":]*))?[)"]`)
	code := regexp.MustCompile("(?ms:^```.*?^```$)|`[^`\n]*`")
	headings := map[string]map[string]bool{}
	for name, text := range all {
		headings[name] = anchors(text)
	}
	for name, text := range all {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			target := name
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(name), m[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", name, err)
			} else if m[2] != "" && !headings[target][m[2]] {
				t.Errorf("%s: %s has no heading #%s", name, target, m[2])
			}
		}
	}
}

// TestReferencesAreDefined: [text][name] needs a line [name]: address, which in
// turn must be used.
func TestReferencesAreDefined(t *testing.T) {
	t.Parallel()
	for name, text := range documents(t) {
		used, defined := map[string]bool{}, map[string]bool{}
		for _, m := range regexp.MustCompile(`\]\[([a-z0-9-]+)\]`).FindAllStringSubmatch(text, -1) {
			used[m[1]] = true
		}
		for _, m := range regexp.MustCompile(`(?m)^\[([a-z0-9-]+)\]: `).FindAllStringSubmatch(text, -1) {
			defined[m[1]] = true
		}
		if !maps.Equal(used, defined) {
			t.Errorf("%s uses %v and defines %v", name, used, defined)
		}
	}
}

// anchors returns those of the headings of a text on GitHub.
func anchors(text string) map[string]bool {
	all, dropped := map[string]bool{}, regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		all[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return all
}

// testNames returns the names of all tests, examples and benchmarks.
func testNames(t *testing.T) (names []string) {
	t.Helper()
	function := regexp.MustCompile(`(?m)^func ((?:Test|Example|Fuzz|Benchmark)\w*)\(`)
	for _, path := range files(t, ".go") {
		if strings.HasSuffix(path, "_test.go") {
			for _, m := range function.FindAllStringSubmatch(read(t, path), -1) {
				names = append(names, m[1])
			}
		}
	}
	return names
}

func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	tests := testNames(t)
	var conformance strings.Builder
	for _, path := range files(t, ".go") {
		if strings.Contains(path, "locktest") {
			conformance.WriteString(read(t, path))
		}
	}
	named := regexp.MustCompile("`((?:Test|Example|Fuzz|Benchmark)\\w+)`|locktest`?((?:(?:,| and)?\\s\"[^\"]+\")+)")
	parts := regexp.MustCompile(`"[^"]+"`)
	for name, text := range documents(t) {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if m[1] != "" && !slices.Contains(tests, m[1]) {
				t.Errorf("%s names %s, which does not exist", name, m[1])
			}
			for _, part := range parts.FindAllString(m[2], -1) {
				if !strings.Contains(conformance.String(), part+":") {
					t.Errorf("%s names locktest %s, which does not exist", name, part)
				}
			}
		}
	}
}

// TestNamedIdentifiersExist checks names such as `lock.Key`. The changelog may
// name what is gone.
func TestNamedIdentifiersExist(t *testing.T) {
	t.Parallel()
	clause := regexp.MustCompile(`(?m)^package (\w+)`)
	declared := regexp.MustCompile(`(?m)^(?:(?:func|type|var|const) |\t)([A-Z]\w*)`)
	exists := map[string]bool{} // both packages and names
	for _, path := range files(t, ".go") {
		source := read(t, path)
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/internal/") {
			continue
		}
		pkg := clause.FindStringSubmatch(source)[1]
		exists[pkg] = true
		for _, m := range declared.FindAllStringSubmatch(source, -1) {
			exists[pkg+"."+m[1]] = true
		}
	}
	named := regexp.MustCompile("`\\*?(\\w+)(\\.[A-Z]\\w*)")
	for name, text := range documents(t) {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if name != "../CHANGELOG.md" && exists[m[1]] && !exists[m[1]+m[2]] {
				t.Errorf("%s names %s%s, which does not exist", name, m[1], m[2])
			}
		}
	}
}

// TestNamedFunctionsExist checks calls without a package, such as
// `OnHeld(Skip)`. The changelog may name what is gone.
func TestNamedFunctionsExist(t *testing.T) {
	t.Parallel()
	declared := regexp.MustCompile(`(?m)^func (?:\([^)]*\) )?([A-Z]\w*)`)
	exists := map[string]bool{}
	for _, path := range files(t, ".go") {
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/internal/") {
			continue
		}
		for _, m := range declared.FindAllStringSubmatch(read(t, path), -1) {
			exists[m[1]] = true
		}
	}
	code := regexp.MustCompile("`[^`\n]+`")
	called := regexp.MustCompile(`(?:^|[^.\w])([A-Z]\w*)\(`)
	for name, text := range documents(t) {
		if name == "../CHANGELOG.md" {
			continue
		}
		for _, c := range code.FindAllString(text, -1) {
			for _, m := range called.FindAllStringSubmatch(c, -1) {
				if !exists[m[1]] {
					t.Errorf("%s calls %s in %s, which does not exist", name, m[1], c)
				}
			}
		}
	}
}

// TestEveryPromiseIsShown checks that each promise links to tests, and that a
// linked file has the test.
func TestEveryPromiseIsShown(t *testing.T) {
	t.Parallel()
	promises := regexp.MustCompile(`(?m)^\| P\d .*$`).FindAllString(section(read(t, "PROMISES.md"), "What we promise"), -1)
	if len(promises) != 8 {
		t.Errorf("PROMISES.md makes %d promises, want 8", len(promises))
	}
	shown := regexp.MustCompile("\\[`((?:Test|Example|Fuzz|Benchmark)\\w+)`\\]\\(([^)]+)\\)")
	for _, promise := range promises {
		links := shown.FindAllStringSubmatch(promise, -1)
		if len(links) == 0 {
			t.Errorf("no test shows this promise: %s", promise)
		}
		for _, m := range links {
			if !strings.Contains(read(t, m[2]), "func "+m[1]+"(") {
				t.Errorf("%s has no %s", m[2], m[1])
			}
		}
	}
}

// TestMakeTargetsExist checks every make command that a document shows or
// names.
func TestMakeTargetsExist(t *testing.T) {
	t.Parallel()
	targets := read(t, "../Makefile")
	for name, text := range documents(t) {
		for _, m := range regexp.MustCompile("(?m)(?:`|^)make ([a-z]+)").FindAllStringSubmatch(text, -1) {
			if !strings.Contains(targets, "\n"+m[1]+":") {
				t.Errorf("%s names make %s, which does not exist", name, m[1])
			}
		}
	}
}

// TestMakefileNamesTests checks that each alternative of every pattern of tests
// in the Makefile and .ci/no-race matches a test, because go test passes where
// none does.
func TestMakefileNamesTests(t *testing.T) {
	t.Parallel()
	tests := testNames(t)
	patterns := regexp.MustCompile(`-run '?([^ '\n]+)`).FindAllStringSubmatch(strings.ReplaceAll(read(t, "../Makefile"), "$$", "$"), -1)
	patterns = append(patterns, regexp.MustCompile(`(?m)^([^#\n]+)$`).FindAllStringSubmatch(read(t, "../.ci/no-race"), -1)...)
	found := 0
	for _, m := range patterns {
		for alternative := range strings.SplitSeq(strings.Trim(m[1], "^($)"), "|") {
			found++
			alternative, _, _ = strings.Cut(alternative, "/") // the rest names what a test runs
			if alternative != "" && !slices.ContainsFunc(tests, regexp.MustCompile(alternative).MatchString) {
				t.Errorf("no test matches %q of %q", alternative, m[1])
			}
		}
	}
	if found < 50 {
		t.Errorf("found %d names", found)
	}
}

// TestMakefileQuotesPaths checks that a clone may lie in a folder whose name
// has a space.
func TestMakefileQuotesPaths(t *testing.T) {
	t.Parallel()
	recipes := regexp.MustCompile(`(?m)^\t.*\$\(CURDIR\).*`).FindAllString(read(t, "../Makefile"), -1)
	if len(recipes) == 0 {
		t.Error("no line names the folder")
	}
	for _, recipe := range recipes {
		if strings.Count(recipe, "$(CURDIR)") != strings.Count(recipe, `"$(CURDIR)/`) {
			t.Errorf("a path is not quoted: %s", recipe)
		}
	}
}
