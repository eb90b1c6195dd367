// Command mutants plants known bugs in the library, one at a time, and reports
// whether the tests that are named for each notice it.
//
//	go run . [-only regexp] [-p n] [-v]
//
// It runs in tools/mutants, and reads the bugs from its *.txt. No file is
// changed: the go command is given the planted bug as an overlay. It fails if a
// bug survives, if it makes the tests hang instead of failing, and if a row no
// longer fits the code.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"
)

func main() {
	only := flag.String("only", "", "plant only the bugs whose file or description matches `regexp`")
	parallel := flag.Int("p", 2, "plant `n` bugs at a time")
	verbose := flag.Bool("v", false, "print what the tests print unless they notice")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *only, *parallel, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, parallel int, verbose bool) error {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	rows, err := load(".")
	if err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(r row) bool {
		return !wanted.MatchString(r.file) && !wanted.MatchString(r.bug)
	})
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)

	began := time.Now()
	if err := passWithout(ctx, root, rows); err != nil {
		return err
	}
	count := map[outcome]int{}
	plantAll(ctx, root, work, rows, parallel, func(r *row, res result) {
		count[res.outcome]++
		res.print(r, verbose)
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	fmt.Printf("%d bugs in %v: %d noticed, %d survived, %d made tests hang, %d rows do not fit\n",
		len(rows), time.Since(began).Round(time.Second), count[noticed], count[survived], count[hung], count[broken])
	if bad := len(rows) - count[noticed]; bad > 0 {
		return fmt.Errorf("%d of %d bugs need a test, or a correction of the row", bad, len(rows))
	}
	return nil
}

// plantAll plants each bug, several at a time, and reports what became of it,
// one after the other.
func plantAll(ctx context.Context, root, work string, rows []row, parallel int, report func(*row, result)) {
	jobs := make(chan *row)
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for r := range jobs {
				res := plant(ctx, root, work, r)
				mu.Lock()
				report(r, res)
				mu.Unlock()
			}
		})
	}
	for i := range rows {
		if ctx.Err() != nil {
			break
		}
		jobs <- &rows[i]
	}
	close(jobs)
	workers.Wait()
}
