// Local runs every example, with duplicates of its event, in the project's local
// Lambda, with a lock table and an S3 on the loopback interface. It needs nothing
// but Go, and fails if an example does not do what it promises.
//
//	go run ./internal/runner [-v] [example ...]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"
)

// longest is how long one example may take before what it waits for is given up.
const longest = time.Minute

func main() {
	verbose := flag.Bool("v", false, "print what the functions print")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, flag.Args(), *verbose); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "local:", err)
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
	b, err := build(ctx, chosen)
	if err != nil {
		return err
	}
	defer b.remove()
	failed := 0
	for _, x := range chosen {
		begun := time.Now()
		fmt.Printf("%s: %s\n", x.name, x.shows)
		r := play(ctx, b, x)
		for _, line := range r.lines {
			fmt.Println("    " + line)
		}
		if verbose || len(r.surprises) > 0 {
			for _, line := range r.printed {
				fmt.Println("        " + line)
			}
		}
		for _, s := range r.surprises {
			fmt.Println("  SURPRISE: " + s)
		}
		if len(r.surprises) > 0 {
			failed++
		} else {
			fmt.Printf("  as promised, %.1f s\n", time.Since(begun).Seconds())
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d examples did not do what they promise", failed, len(chosen))
	}
	fmt.Printf("all %d examples did what they promise\n", len(chosen))
	return nil
}
