package simulation

import (
	"sync"
	"testing"
	"testing/synctest"
)

// Twice plays every history twice, and fails at the first line in which the two
// differ: then a seed does not bring a failure back. A line is a request with
// its answer, or anything else that [Run] logs.
func Twice(t *testing.T, open Opener, c Config) {
	t.Helper()
	c = c.withDefaults()
	first, n := c.seeds(t)
	for seed := first; seed < first+n && !t.Failed(); seed++ {
		before, again := record(t, open, c, seed), record(t, open, c, seed)
		for i := range max(len(before), len(again)) {
			if i >= len(before) || i >= len(again) || before[i] != again[i] {
				t.Errorf("seed %d differs from line %d of %d and %d on:\n%s\n%s", seed, i, len(before), len(again), line(before, i), line(again, i))
				break
			}
		}
	}
}

// record returns what happens in a history.
func record(t *testing.T, open Opener, c Config, seed uint64) (lines []string) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		note := func(line string) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, line)
		}
		play(t, open, c, seed, note, func(string) {})
	})
	return lines
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(the end)"
}
