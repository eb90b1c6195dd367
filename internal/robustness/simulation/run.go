package simulation

import (
	"testing"
	"time"
)

// Run checks a store, and the library on it, in subtests:
//
//   - contention lets 32 callers acquire one name while nothing fails.
//   - replay plays a few seeds twice and compares the histories.
//   - bursts lets processes coalesce events, if the store is a
//     [driver.Coalescer].
//   - interrupted lets processes die and asks about the events that they leave,
//     if the store is a [driver.Coalescer].
//   - faults plays histories in which processes and requests fail.
//   - clocks does so with clocks that differ by hours, if the store has a clock
//     of its own.
//
// In the short form it plays a tenth of the histories, because the race
// detector makes them ten times slower.
func Run(t *testing.T, open Opener, c Config) {
	t.Helper()
	c.tests = callingTests()
	if testing.Short() {
		c.Histories = max(c.Histories/10, 1)
	}
	apart := c
	if c.ServerClock && c.Skew == 0 {
		apart.Skew = 10 * time.Hour
	}
	few := apart.withDefaults()
	few.Histories, few.Share = 2, 100
	if testing.Short() {
		few.Histories = 1
	}
	t.Run("contention", func(t *testing.T) { Contention(t, open, few) })
	t.Run("replay", func(t *testing.T) {
		CheckReplay(t, few, func(t *testing.T, seed uint64, note func(string)) {
			play(t, open, few, seed, note, func(string) {})
		})
	})
	fifth := c
	fifth.Histories = max(c.Histories/5, 1)
	t.Run("bursts", func(t *testing.T) { Bursts(t, open, fifth) })
	t.Run("interrupted", func(t *testing.T) { Interrupted(t, open, fifth) })
	t.Run("faults", func(t *testing.T) { Faults(t, open, c) })
	if apart.Skew != c.Skew {
		t.Run("clocks", func(t *testing.T) { Faults(t, open, apart) })
	}
}

// Faults plays only the histories in which processes and requests fail, and
// logs what happened in them.
func Faults(t *testing.T, open Opener, c Config) {
	t.Helper()
	c = c.withDefaults()
	var all report
	defer func() { t.Log(all) }() // a bubble that fails ends the test
	Play(t, c, func(t *testing.T, seed uint64, note func(string)) {
		all.add(play(t, open, c, seed, note, func(what string) { t.Error(what) }))
	})
	all.mustVary(t, c)
}
