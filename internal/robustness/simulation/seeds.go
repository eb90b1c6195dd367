package simulation

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
)

// Tenth is how many of n histories to play: a tenth of them in the short form,
// because the race detector makes them ten times slower.
func Tenth(n uint64) uint64 {
	if testing.Short() {
		return n / 10
	}
	return n
}

// Play plays the histories that c.First, c.Histories and c.Share name, each in
// a bubble of its own, until one fails. A history is a function of its seed.
// LAMBDALOCK_SEEDS plays so many, divided by c.Share, from LAMBDALOCK_SEED on;
// without it, LAMBDALOCK_SEED plays only that one and logs what happens in it,
// which history tells note unless that is nil. The log of a failure has the
// command that plays it again.
func Play(t *testing.T, c Config, history func(t *testing.T, seed uint64, note func(line string))) {
	t.Helper()
	command := replay(t)
	first, n := c.withDefaults().seeds(t)
	for seed := first; seed < first+n; seed++ {
		func() {
			defer func() { // also if the bubble ends the test
				if t.Failed() {
					t.Logf("play it again with: LAMBDALOCK_SEED=%d %s", seed, command)
				}
			}()
			synctest.Test(t, func(t *testing.T) {
				var note func(string)
				if os.Getenv("LAMBDALOCK_SEED") != "" && os.Getenv("LAMBDALOCK_SEEDS") == "" {
					note = func(line string) { t.Log(line) }
				}
				history(t, seed, note)
			})
		}()
		if t.Failed() {
			return
		}
	}
}

// seeds returns which histories to play.
func (c Config) seeds(t *testing.T) (first, n uint64) {
	first, n = c.First, c.Histories
	if s := os.Getenv("LAMBDALOCK_SEED"); s != "" {
		first, n = number(t, s), 1
	}
	if s := os.Getenv("LAMBDALOCK_SEEDS"); s != "" {
		n = max(number(t, s)/c.Share, 1)
	}
	return first, n
}

func number(t *testing.T, s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// replay returns the command that runs only this test, anywhere in its module.
func replay(t *testing.T) string {
	const tests = "_test." // the end of the package whose function called
	for skip := 1; ; skip++ {
		pc, _, _, ok := runtime.Caller(skip)
		if !ok {
			return fmt.Sprintf("go test -run '^%s$'", t.Name())
		}
		if f := runtime.FuncForPC(pc).Name(); strings.Contains(f, tests) {
			folder, _, _ := strings.Cut(f, tests)
			return fmt.Sprintf("go test -count=1 -v -run '^%s$' %s", strings.ReplaceAll(t.Name(), "/", "$/^"), folder)
		}
	}
}
