//go:build unix

package shell_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/commandtest"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// TestExecContention: 50 commands start at the same time and run one after the
// other. So many processes would leave a parallel test too little time for its
// requests.
func TestExecContention(t *testing.T) {
	table := newTable(t)
	file := filepath.Join(t.TempDir(), "counter")
	expect.Must(t, os.WriteFile(file, []byte("0"), 0o600))
	const commands = 50
	runs := atOnce(commands, func(int) commandtest.Result {
		return command(t, table.Env, "exec", "--wait", "10m", "--key", "k", "--", "sh", "-c",
			`n=$(cat "$1"); echo "$LAMBDALOCK_FENCE"; echo $((n + 1)) > "$1"`, "sh", file)
	})
	var fences []string
	for _, r := range runs {
		r.Expect(t, 0)
		fences = append(fences, r.Stdout)
	}
	if n, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(n)) != strconv.Itoa(commands) {
		t.Errorf("the counter is %s, want %d (%v)", n, commands, err)
	}
	slices.Sort(fences)
	if n := len(slices.Compact(fences)); n != commands {
		t.Errorf("%d different fences, want %d", n, commands)
	}
}

// TestExecEventAtOnce: one event at the same time in 20 commands.
func TestExecEventAtOnce(t *testing.T) {
	table := newTable(t)
	ran, skipped := 0, 0
	for _, r := range atOnce(20, func(int) commandtest.Result {
		return command(t, table.Env, "exec", "--wait", "10m", "--key", "k", "--event", "e1", "--", "echo", "ran")
	}) {
		r.Expect(t, 0)
		ran += strings.Count(r.Stdout, "ran")
		skipped += strings.Count(r.Stderr, "has succeeded before")
	}
	if ran != 1 || skipped != 19 {
		t.Errorf("ran %d times, skipped %d times, want 1 and 19", ran, skipped)
	}
}

// atOnce calls f n times at the same time.
func atOnce(n int, f func(int) commandtest.Result) []commandtest.Result {
	runs := make([]commandtest.Result, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { runs[i] = f(i) })
	}
	all.Wait()
	return runs
}
