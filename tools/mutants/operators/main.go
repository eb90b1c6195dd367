// Command operators changes the operators of a package, one at a time, and
// reports which changes its tests do not notice:
//
//	go run ./operators [-p n] [-least percent] folder[=folder of its tests]...
//
// It makes the changes that gremlins makes (https://gremlins.dev): conditions
// are negated and their bounds moved, arithmetic, increments and signs are
// inverted; and "and" becomes "or". Where gremlins builds and runs the tests of
// a package once for each change, this command builds them once, with all
// changes inside and an environment variable that chooses one. It runs only the
// tests that reach the change, the quickest ones first. For lock/driver that
// took 8 s on a machine on which gremlins v0.6.0 took 128 s, and package lock
// has fifteen times as many changes. Tests that take longer than 10 s are left
// out.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

func main() {
	parallel := flag.Int("p", 2, "test `n` changes at a time")
	least := flag.Float64("least", 90, "fail if the tests of a package notice fewer `percent` of the changes that they reach")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	failed := false
	for _, dir := range flag.Args() {
		found, err := examine(ctx, dir, *parallel)
		if err != nil {
			fmt.Fprintf(os.Stderr, "operators: %s: %v\n", dir, err)
			failed = true
			continue
		}
		failed = failed || found < *least
	}
	if failed {
		stop()
		os.Exit(1)
	}
}

// examine tests all changes of the package in dir, and returns how many percent
// of those that are reached are noticed.
func examine(ctx context.Context, dir string, parallel int) (float64, error) {
	began := time.Now()
	dir, tests, elsewhere := strings.Cut(dir, "=")
	if !elsewhere {
		tests = dir
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return 0, err
	}
	tests, err = filepath.Abs(tests)
	if err != nil {
		return 0, err
	}
	work, err := os.MkdirTemp("", "operators")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(work)
	p, err := load(ctx, dir)
	if err != nil {
		return 0, err
	}
	changes, err := p.instrument(work)
	if err != nil {
		return 0, err
	}
	s := &suite{dir: tests, work: work}
	if err := s.build(ctx); err != nil {
		return 0, err
	}
	if err := s.measure(ctx, len(changes)); err != nil {
		return 0, err
	}
	count := s.tryAll(ctx, changes, parallel)
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	found := 100.0
	if reached := count[killed] + count[hung] + count[lived]; reached > 0 {
		found = 100 * float64(count[killed]+count[hung]) / float64(reached)
	}
	fmt.Printf("%s: %d changes: %d killed, %d hung, %d lived, %d not reached: %.1f %% in %v\n",
		p.path, len(changes), count[killed], count[hung], count[lived], count[unreached], found, time.Since(began).Round(time.Second))
	return found, nil
}

// tryAll tests all changes, several at a time, and counts what became of them.
func (s *suite) tryAll(ctx context.Context, changes []string, parallel int) map[verdict]int {
	count := map[verdict]int{}
	var mu sync.Mutex
	next := make(chan int)
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for id := range next {
				v := s.try(ctx, id)
				mu.Lock()
				count[v]++
				if v == lived || v == unreached {
					fmt.Printf("%-9s %s\n", v, changes[id])
				}
				mu.Unlock()
			}
		})
	}
	for id := range changes {
		if ctx.Err() == nil {
			next <- id
		}
	}
	close(next)
	workers.Wait()
	return count
}
