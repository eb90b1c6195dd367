// Command mutants plants bugs in the library, one at a time, and reports
// whether the tests notice. It answers the question that coverage leaves open:
// not which lines a test runs, but which promises it would see broken.
//
//	go run . [-only regexp] [-p n] [-v]
//
// It runs in tools/mutants. No file is changed: the go command is given the
// planted bug as an overlay. It fails if a bug survives that has no reason to,
// if a bug makes the tests hang instead of failing, and if the table no longer
// fits the code: then the text to replace must be brought up to date, or the
// bug cannot be made any more.
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

// mutant is a bug to plant.
type mutant struct {
	file     string // from the root of the repository
	bug      string // what the code then does
	breaks   string // the promise or the fault; see docs/PROMISES.md
	old, new string // the text, which the file must have once, and what replaces it
	// by names the tests that notice, as for go test -run. If they do not, all
	// tests of the package are tried. Empty: all of them.
	by string
	in string // the folder of those tests; empty: that of the file
	// survives says why no test can notice. Empty: one does.
	survives string
}

// table has every planted bug.
var table = slices.Concat(
	rows, acquisition, requests, leases, settlements, coalesce, handovers, memory, several,
	dynamo, company, transactions, redis, quorum, objects, s3, azure,
	keys, events, callers,
	handlers, batches, redelivery, http, configuration, telemetry, miscounts(), migration, command, operator, construct,
)

func main() {
	only := flag.String("only", "", "plant only the bugs whose file or description matches `regexp`")
	parallel := flag.Int("p", 2, "test `n` bugs at a time")
	verbose := flag.Bool("v", false, "print what the tests print if a bug survives or does not compile")
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
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	chosen := slices.DeleteFunc(slices.Clone(table), func(m mutant) bool {
		return !wanted.MatchString(m.file) && !wanted.MatchString(m.bug)
	})

	began := time.Now()
	var mu sync.Mutex
	count, bad := map[outcome]int{}, 0
	report := func(m mutant, r result) {
		mu.Lock()
		defer mu.Unlock()
		count[r.outcome]++
		if r.outcome.bad() {
			bad++
		}
		r.print(m, verbose)
	}
	if err := plant(ctx, root, work, chosen, parallel, report); err != nil {
		return err
	}
	fmt.Printf("%d bugs in %v: %d caught, %d survived with a reason, %d survived, %d made tests hang, %d errors of the table\n",
		len(chosen), time.Since(began).Round(time.Second), count[caught], count[excused], count[survived], count[hung], count[broken])
	if bad > 0 {
		return fmt.Errorf("%d of %d bugs need a test, or a correction of the table", bad, len(chosen))
	}
	return nil
}

// plant plants each bug, several at a time, and reports what became of it.
func plant(ctx context.Context, root, work string, chosen []mutant, parallel int, report func(mutant, result)) error {
	jobs := make(chan func())
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for job := range jobs {
				job()
			}
		})
	}
	bundles, singles := split(root, chosen)
	for _, b := range bundles {
		wrong, err := b.build(ctx, work)
		if err != nil {
			close(jobs)
			return err
		}
		if out, ok := b.test(ctx, -1, b.named(chosen)); !ok {
			close(jobs)
			return fmt.Errorf("tests in %s fail without a bug:\n%s", b.in, out)
		}
		for id, why := range wrong {
			report(chosen[id], result{outcome: broken, why: why})
		}
		for id := range b.plans {
			jobs <- func() {
				report(chosen[id], judge(chosen[id], func(tests string) ([]byte, bool) { return b.test(ctx, id, tests) }))
			}
		}
	}
	for _, m := range singles {
		if ctx.Err() != nil {
			break
		}
		jobs <- func() { report(m, single(ctx, root, work, m)) }
	}
	close(jobs)
	workers.Wait()
	return ctx.Err()
}
