package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// lines are consecutive lines of a file, counted from 1.
type lines struct{ from, to int }

var everything = lines{1, math.MaxInt}

// choose returns the lines to cut, by file: those that the arguments name, or
// those that have changed since the branch left the revision.
func choose(ctx context.Context, root string, args []string) (map[string][]lines, error) {
	wanted := map[string][]lines{}
	for _, arg := range args {
		name, span, limited := strings.Cut(arg, ":")
		l := everything
		if _, err := fmt.Sscanf(span, "%d-%d", &l.from, &l.to); limited && err != nil {
			return nil, fmt.Errorf("%s: after the colon are the first and the last line, as in 12-34", arg)
		}
		name = filepath.Join(root, name)
		wanted[name] = append(wanted[name], l)
	}
	if len(args) > 0 {
		return wanted, nil
	}
	base, err := command(ctx, root, "git", "merge-base", *rev, "HEAD")
	if err != nil {
		return nil, err
	}
	code := []string{"--", "*.go", ":(exclude)*_test.go", ":(exclude)*/testdata/*"}
	diff, err := command(ctx, root, "git", append([]string{"diff", "-U0", "--no-color", "--no-ext-diff", "--dst-prefix=b/", strings.TrimSpace(base)}, code...)...)
	if err != nil {
		return nil, err
	}
	added, err := command(ctx, root, "git", append([]string{"ls-files", "--others", "--exclude-standard"}, code...)...)
	if err != nil {
		return nil, err
	}
	for name, changed := range hunks(diff) {
		wanted[filepath.Join(root, name)] = changed
	}
	for _, name := range strings.Fields(added) {
		wanted[filepath.Join(root, name)] = []lines{everything}
	}
	return wanted, nil
}

var hunk = regexp.MustCompile(`^@@ -\S+ \+(\d+)(?:,(\d+))? @@`)

// hunks returns the new lines of a diff without context, by file.
func hunks(diff string) map[string][]lines {
	changed, name := map[string][]lines{}, ""
	for line := range strings.Lines(diff) {
		if file, ok := strings.CutPrefix(line, "+++ b/"); ok {
			name = strings.TrimSpace(file)
		} else if at := hunk.FindStringSubmatch(line); at != nil && at[2] != "0" {
			from, _ := strconv.Atoi(at[1])
			more, _ := strconv.Atoi(at[2]) // "" is one line
			changed[name] = append(changed[name], lines{from, from + max(more, 1) - 1})
		}
	}
	return changed
}
