package simulation

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// CheckReplay plays every history twice, as [Play] does, and fails at the first
// line in which the notes of the two differ, or that has the pid of the test,
// which is another one in the next: then the seed of a failure does not bring
// it back.
func CheckReplay(t *testing.T, c Config, history func(t *testing.T, seed uint64, note func(line string))) {
	t.Helper()
	first, n := c.withDefaults().seeds(t)
	pid := fmt.Sprint("pid ", os.Getpid())
	for seed := first; seed < first+n && !t.Failed(); seed++ {
		var plays [2][]string
		for i := range plays {
			var mu sync.Mutex
			note := func(line string) {
				mu.Lock()
				defer mu.Unlock()
				plays[i] = append(plays[i], line)
			}
			synctest.Test(t, func(t *testing.T) { history(t, seed, note) })
			plays[i] = append(plays[i], "the end")
		}
		for i, line := range plays[0] {
			if strings.Contains(line, pid) {
				t.Errorf("seed %d, line %d depends on the process of the test:\n%s", seed, i+1, line)
				break
			}
			if again := plays[1][min(i, len(plays[1])-1)]; line != again {
				t.Errorf("seed %d, line %d:\n%s\nand when it is replayed:\n%s", seed, i+1, line, again)
				break
			}
		}
	}
}
