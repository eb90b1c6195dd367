// Command cutter changes the code in small ways ("cuts"), one at a time, and
// lists those that no test notices: a statement left out, half of a condition,
// two arguments swapped, and the like.
//
//	go run ./cutter [flags] [file[:from-to] ...]
//
// It runs in the repository. No file is changed: the go command is given the
// cuts as an overlay. Without files it cuts the lines that have changed since
// -rev. Each cut meets the tests of all modules that call its function, those
// of its own package first. The exit status is 1 if a cut survives.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var (
	rev      = flag.String("rev", "origin/main", "cut the lines that have changed since the branch left `revision`")
	packages = flag.String("packages", "", "run only the tests of packages whose path matches `regexp`")
	sample   = flag.Int("n", math.MaxInt, "make only `n` of the cuts, drawn at random")
	seed     = flag.Uint64("seed", 1, "draw them from this `number`")
	parallel = flag.Int("p", runtime.NumCPU(), "try `n` cuts at a time")
	listOnly = flag.Bool("list", false, "list the cuts, and run no test")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root, err := command(ctx, ".", "git", "rev-parse", "--show-toplevel")
	if err == nil {
		err = run(ctx, strings.TrimSpace(root), flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cutter:", err)
		os.Exit(1)
	}
}

// run makes the cuts in the repository at root.
func run(ctx context.Context, root string, args []string) error {
	wanted, err := choose(ctx, root, args)
	if err != nil {
		return err
	}
	cuts, err := find(ctx, root, wanted)
	if err != nil {
		return err
	}
	for r := rand.New(rand.NewPCG(*seed, 0)); len(cuts) > *sample; {
		at := r.IntN(len(cuts))
		cuts = slices.Delete(cuts, at, at+1)
	}
	began := time.Now()
	if !*listOnly {
		err = try(ctx, root, cuts)
	}
	survivors := unnoticed(cuts)
	for _, c := range survivors {
		fmt.Println(c)
	}
	fmt.Printf("%d cuts, %.1f s\n", len(cuts), time.Since(began).Seconds())
	if err == nil && len(survivors) > 0 && !*listOnly {
		err = fmt.Errorf("%d cuts survive", len(survivors))
	}
	return err
}

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
		wanted[name] = append(wanted[name], l)
	}
	if len(args) > 0 {
		return wanted, nil
	}
	const code = " -- *.go :(exclude)*_test.go :(exclude)*/testdata/*"
	diff, err := command(ctx, root, "git", strings.Fields("diff -U0 --no-color --no-ext-diff --dst-prefix=b/ --merge-base "+*rev+code)...)
	if err != nil {
		return nil, err
	}
	added, err := command(ctx, root, "git", strings.Fields("ls-files --others --exclude-standard"+code)...)
	wanted = hunks(diff)
	for _, name := range strings.Fields(added) {
		wanted[name] = []lines{everything}
	}
	return wanted, err
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

// command returns what a command prints.
func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var message strings.Builder
	cmd.Stderr = &message
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s in %s: %w\n%s", name, strings.Join(args, " "), dir, err, message.String())
	}
	return string(out), err
}
