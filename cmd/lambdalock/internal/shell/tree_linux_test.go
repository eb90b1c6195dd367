package shell_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/commandtest"
)

// family is a command that starts others, which do not end by themselves: in
// its process group, in a session of its own, and one whose parent has ended.
// None of them ends when it is asked.
const family = `trap "" TERM INT HUP

live() { echo $$ >>pids; SECONDS=0; while [ $SECONDS -lt 120 ]; do sleep 0.01; done; }
export -f live 2>/dev/null
(setsid bash -c live &)
bash -c live &
bash -c "set -m; bash -c live & wait" &
while [ "$(wc -l <pids)" -lt 3 ]; do sleep 0.01; done
`

// TestNothingGoesOnInTerminal: nothing that was started in a terminal goes on
// when the next holder begins.
func TestNothingGoesOnInTerminal(t *testing.T) { // F19, F20, F64
	t.Parallel()
	for name, c := range map[string]struct {
		trap string // for the command alone, once it has started the others
		end  func(t *testing.T, table *commandtest.Table, p *typist, lambdalock int)
	}{
		"lost network": {"", nil},
		"release": {"", func(t *testing.T, table *commandtest.Table, p *typist, _ int) {
			breakLock(t, table, "k")
			p.sees("the lock was lost, because somebody else released or took it")
			p.types("echo ov''er\n")
			p.sees("over")
		}},
		"kill -9": {"", func(t *testing.T, _ *commandtest.Table, _ *typist, lambdalock int) {
			kill(t, lambdalock, syscall.SIGKILL)
		}},
		"TERM": {"trap - TERM", func(t *testing.T, _ *commandtest.Table, _ *typist, lambdalock int) {
			kill(t, lambdalock, syscall.SIGTERM)
		}},
		"Ctrl-C": {"trap - INT", func(_ *testing.T, _ *commandtest.Table, p *typist, _ int) {
			p.types("\x03")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newTable(t)
			var down sync.Mutex
			env := through(t, table.URL, func() { down.Lock(); down.Unlock() }) //nolint:staticcheck // it waits while the store is down
			p := interactive(t, append(table.Env, env...))
			pids := startFamily(p, t.TempDir(), c.trap)
			if c.end == nil {
				down.Lock()
				defer down.Unlock()
			} else {
				c.end(t, table, p, pids[0])
			}
			args := []string{"exec", "--wait", "1m", "--conflict-exit-code", "99", "--key", "k", "--", "ps", "-o", "pid=,stat=,args="}
			for _, pid := range pids[1:] {
				args = append(args, "-p", strconv.Itoa(pid))
			}
			next := command(t, table.Env, args...)
			for line := range strings.Lines(next.Stdout) {
				if !strings.HasPrefix(strings.Fields(line)[1], "Z") {
					t.Error("beside the next holder:", line)
				}
			}
			if !strings.Contains("01", strconv.Itoa(next.Status)) { // 1: no such process
				t.Error(next)
			}
		})
	}
}

// startFamily runs the family under a lock, and returns the process ids of
// lambdalock, of the command and of what it started. The command that prints
// them is bash no longer: bash may take Ctrl-C for one that its child handled,
// and loses one that comes between a line that it prints and an exec.
func startFamily(p *typist, folder, trap string) []int {
	p.t.Helper()
	for file, text := range map[string]string{"family": family + trap + "\necho pids $PPID $$ $(cat pids) >told\nexec tail -f told\n", "pids": ""} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
	p.types("cd " + folder + "; lambdalock exec --lease 6s --key k -- bash ./family\n")
	p.sees("pids ")
	var pids []int
	for text := range strings.FieldsSeq(p.sees("\n")) {
		pid, err := strconv.Atoi(text)
		if err != nil {
			p.t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if len(pids) != 5 {
		p.t.Fatalf("processes %v, want 5", pids)
	}
	return pids
}

func kill(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}

// TestExecReaps: orphans of the command do not stay as zombies.
func TestExecReaps(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	p := begin(t, prepare(t, table.Env, "exec", "--key", "k", "--", "sh", "-c", `echo $PPID; sh -c 'sleep 0.1 & echo $!'; read line`))
	parent, orphan := p.Number(), p.Number()
	for late := time.Now().Add(patience); state(orphan) != ""; {
		if time.Now().After(late) {
			t.Fatalf("process %d, a child of %d, is in state %s", orphan, parent, state(orphan))
		}
		time.Sleep(5 * time.Millisecond) // nothing reports the end of somebody else's child
	}
	p.Say("go")
	p.End(0)
}
