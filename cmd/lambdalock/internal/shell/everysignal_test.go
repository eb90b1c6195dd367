//go:build unix

package shell

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/commandtest"
)

// TestEverySignalHasAHandling: none of the system's signals was forgotten.
func TestEverySignalHasAHandling(t *testing.T) { // F64
	t.Parallel()
	named := 0
	for s := syscall.Signal(1); s < firstRealTime; s++ {
		name := unix.SignalName(s)
		if name == "" {
			continue
		}
		named++
		if _, ok := handled[name]; !ok {
			t.Errorf("%s (%d, %v) has no handling", name, s, s)
		}
	}
	if named < 28 { // of POSIX
		t.Errorf("the system has %d signals with names", named)
	}
}

// TestEverySignalArrives: the command gets each signal that is passed on, once.
func TestEverySignalArrives(t *testing.T) { // F64
	t.Parallel()
	var passed []syscall.Signal
	traps := &strings.Builder{}
	for s := syscall.Signal(1); s <= lastSignal; s++ {
		if h := handlingOf(s); h == ends || h == passes || h == informs {
			if s >= firstRealTime && runtime.GOOS != "linux" {
				continue
			}
			passed = append(passed, s)
			fmt.Fprintf(traps, "trap 'echo %d' %d; ", s, s)
		}
	}
	table := commandtest.NewTable(t, "locks")
	p := commandtest.Begin(t, commandtest.Prepare(t, table.Env, "exec", "--key", "k", "--", "sh", "-c",
		traps.String()+"echo ready; while :; do read line && exit; sleep 0.01; done 2>/dev/null"))
	p.WantLine("ready")
	for _, s := range passed {
		p.Signal(s)
		p.WantLine(fmt.Sprint(int(s)))
	}
	p.Say("go")
	if r := p.End(0); r.Stdout != "" {
		t.Errorf("delivered more than once: %q", r.Stdout)
	}
}
