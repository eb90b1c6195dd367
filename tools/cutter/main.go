// Command cutter changes the code in small ways ("cuts"), one at a time, and
// lists those that no test notices: a statement left out, half of a condition,
// two arguments swapped, and the like.
//
//	go run ./cutter [flags] [file[:from-to] ...]
//
// It runs in the repository. No file is changed: the go command is given the
// cuts as an overlay. Without files it cuts the lines that have changed since
// -rev. Each cut meets the tests of all modules that reach its line, those of
// its own package first. The exit status is 1 if a cut survives.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

var (
	rev      = flag.String("rev", "origin/main", "cut the lines that have changed since the branch left `revision`")
	packages = flag.String("packages", "", "run only the tests of packages whose path matches `regexp`")
	sample   = flag.Int("n", 0, "make only `n` of the cuts, drawn at random")
	seed     = flag.Uint64("seed", 1, "draw them from this `number`")
	parallel = flag.Int("p", runtime.NumCPU(), "try `n` cuts at a time")
	listOnly = flag.Bool("list", false, "list the cuts, and run no test")
	short    = flag.Bool("short", true, "run the tests with -short")
	verbose  = flag.Bool("v", false, "print also which tests notice a cut")
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
	if *sample > 0 && *sample < len(cuts) {
		r := rand.New(rand.NewPCG(*seed, 0))
		r.Shuffle(len(cuts), func(i, j int) { cuts[i], cuts[j] = cuts[j], cuts[i] })
		cuts = cuts[:*sample]
		slices.SortFunc(cuts, (*cut).compare)
	}
	began := time.Now()
	if !*listOnly {
		err = try(ctx, root, cuts)
	}
	survivors := slices.DeleteFunc(slices.Clone(cuts), func(c *cut) bool { return c.noticed })
	for _, c := range survivors {
		fmt.Println(c)
	}
	fmt.Printf("%d cuts, %.1f s\n", len(cuts), time.Since(began).Seconds())
	if err == nil && len(survivors) > 0 && !*listOnly {
		err = fmt.Errorf("%d cuts survive", len(survivors))
	}
	return err
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
