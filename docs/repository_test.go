package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDependabotKnowsEveryModule: a forgotten module would keep its old
// dependencies.
func TestDependabotKnowsEveryModule(t *testing.T) {
	t.Parallel()
	var want, got []string
	for _, name := range files(t, ".mod") {
		want = append(want, "/"+strings.TrimPrefix(strings.TrimPrefix(filepath.ToSlash(filepath.Dir(name)), ".."), "/"))
	}
	for _, m := range regexp.MustCompile(`(?m)^      - (/.*)$`).FindAllStringSubmatch(read(t, "../.github/dependabot.yml"), -1) {
		got = append(got, m[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("dependabot.yml has the modules %q, want %q", got, want)
	}
}

func workflows(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	all := map[string]string{}
	for _, name := range names {
		all[name] = read(t, name)
	}
	return all
}

// TestActionsArePinned: a tag can be moved, a commit cannot. One action has the
// same commit everywhere.
func TestActionsArePinned(t *testing.T) {
	t.Parallel()
	uses := regexp.MustCompile(`(?m)^ +(?:- )?uses: (.*)$`)
	pinned := regexp.MustCompile(`^([\w-]+/[\w-]+)[\w/-]*@([0-9a-f]{40} # v\d+\.\d+\.\d+)$`)
	pins := map[string]string{}
	for name, text := range workflows(t) {
		for _, use := range uses.FindAllStringSubmatch(text, -1) {
			m := pinned.FindStringSubmatch(use[1])
			if m == nil {
				t.Errorf("%s: %s is not pinned as ACTION@COMMIT # VERSION", name, use[1])
			} else if before := pins[m[1]]; before != "" && before != m[2] {
				t.Errorf("%s: %s is at %s, and elsewhere at %s", name, m[1], m[2], before)
			} else {
				pins[m[1]] = m[2]
			}
		}
	}
}

// TestWorkflowsRunWhatExists checks the scripts and the targets of make.
func TestWorkflowsRunWhatExists(t *testing.T) {
	t.Parallel()
	makefile := read(t, "../Makefile")
	for name, text := range workflows(t) {
		for _, m := range regexp.MustCompile(`\.ci/\w+`).FindAllString(text, -1) {
			if _, err := os.Stat("../" + m); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, m := range regexp.MustCompile(`run: make (\w+)`).FindAllStringSubmatch(text, -1) {
			if !strings.Contains(makefile, "\n"+m[1]+": ") {
				t.Errorf("%s: the Makefile has no target %s", name, m[1])
			}
		}
	}
}
