package simulation

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// Play plays c.Histories histories, each in its own bubble of fake time, until
// one fails. A history is a function of its seed, and calls note, unless that
// is nil, with everything that happens. LAMBDALOCK_SEEDS replaces the number,
// divided by c.Share; LAMBDALOCK_SEED is the first seed, or without
// LAMBDALOCK_SEEDS the only one, which is logged. The log of a failure has the
// command that replays it.
func Play(t *testing.T, c Config, history func(t *testing.T, seed uint64, note func(line string))) {
	t.Helper()
	collectSeldom()
	command := c.replayCommand(t)
	first, n := c.withDefaults().seeds(t)
	for seed := first; seed < first+n; seed++ {
		func() {
			defer func() { // also if the bubble ends the test
				if t.Failed() {
					t.Logf("replay it with: LAMBDALOCK_SEED=%d %s", seed, command)
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

// collectSeldom lets garbage grow to a multiple of what a history needs, which
// is little, before it is collected.
var collectSeldom = sync.OnceFunc(func() { debug.SetGCPercent(800) })

// seeds returns which histories to play.
func (c Config) seeds(t *testing.T) (first, n uint64) {
	n = c.Histories
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

// replayCommand returns the command that runs only this test, anywhere in its
// module.
func (c Config) replayCommand(t *testing.T) string {
	tests := c.tests
	if tests == "" {
		tests = callingTests()
	}
	return fmt.Sprintf("go test -count=1 -v -run '^%s$' %s", strings.ReplaceAll(t.Name(), "/", "$/^"), tests)
}

// callingTests returns the package whose test called, or "" if none did.
func callingTests() string {
	for skip := 1; ; skip++ {
		pc, _, _, ok := runtime.Caller(skip)
		if !ok {
			return ""
		}
		if tests, _, ok := strings.Cut(runtime.FuncForPC(pc).Name(), "_test."); ok {
			return tests
		}
	}
}
