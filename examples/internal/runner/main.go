// Runner runs every example in the project's local Lambda and delivers its
// event several times. DynamoDB and S3 are in memory, so it needs only Go. It
// fails if an example does not do what it promises, or does no harm when what
// it is protected by is taken out. Run it in folder examples:
//
//	go run ./internal/runner [-v] [example ...]
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync/atomic"
)

func main() {
	verbose := flag.Bool("v", false, "print what the functions print")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, flag.Args(), *verbose); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "runner:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string, verbose bool) error {
	chosen := slices.DeleteFunc(slices.Clone(examples), func(x example) bool {
		return len(names) > 0 && !slices.Contains(names, x.name)
	})
	if len(chosen) < max(len(names), 1) {
		return fmt.Errorf("no such example among %v", names)
	}
	bin, err := os.MkdirTemp("", "lambdalock-examples")
	if err != nil {
		return err
	}
	defer os.RemoveAll(bin)
	if err := build(ctx, ".", bin, chosen); err != nil {
		return err
	}
	r := &report{Logger: log.New(os.Stdout, "    ", 0), verbose: verbose}
	for _, x := range chosen {
		fmt.Printf("%s: %s\n", x.name, x.shows)
		x.play(ctx, ".", bin, r)
		if x.playWithout(ctx, ".", bin, r); ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if n := r.failures.Load(); n > 0 {
		return fmt.Errorf("%d failures: not every example does what it promises", n)
	}
	fmt.Printf("all %d examples do what they promise\n", len(chosen))
	return nil
}

// build builds the chosen examples into folder bin as they are built for
// deployment, also without each of their protections.
func build(ctx context.Context, root, bin string, chosen []example) error {
	file, packages, err := overlay(root, bin, chosen)
	if err != nil {
		return err
	}
	args := []string{"build", "-C", root, "-overlay", file, "-tags", "lambda.norpc", "-ldflags", "-s -w", "-o", bin + string(filepath.Separator)}
	for _, x := range chosen {
		packages = append(packages, "./"+x.name)
	}
	args = append(args, packages...)
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// report prints what happens and counts failures.
type report struct {
	*log.Logger
	verbose  bool
	failures atomic.Int64
}

const failure = "FAIL: " // begins the line of a failure

func (r *report) fail(format string, args ...any) {
	r.failures.Add(1)
	r.Printf(failure+format, args...)
}

// must reports whether err is nil, and counts any other as a failure.
func (r *report) must(what string, err error) bool {
	if err != nil {
		r.fail("%s: %v", what, err)
	}
	return err == nil
}
