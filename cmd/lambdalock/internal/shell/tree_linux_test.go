package shell_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/commandtest"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
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
		last string // what the command does once it has started the others
		end  func(t *testing.T, table *commandtest.Table, p *typist, pids []int)
	}{
		"lost network": {"", nil},
		"release": {"", func(t *testing.T, table *commandtest.Table, p *typist, _ []int) {
			breakLock(t, table, "k")
			p.sees("the lock was lost, because somebody else released or took it")
			p.types("echo ov''er\n")
			p.sees("over")
		}},
		"kill -9": {"", func(t *testing.T, _ *commandtest.Table, _ *typist, pids []int) {
			kill(t, pids[0], syscall.SIGKILL)
		}},
		"TERM": {"trap - TERM", func(t *testing.T, _ *commandtest.Table, _ *typist, pids []int) {
			kill(t, pids[0], syscall.SIGTERM)
		}},
		"TERM to all, kill -9": {"", func(t *testing.T, _ *commandtest.Table, _ *typist, pids []int) {
			termAll(t, pids)
			kill(t, pids[0], syscall.SIGKILL)
		}},
		"guard killed, kill -9": {"", func(t *testing.T, _ *commandtest.Table, p *typist, pids []int) {
			kill(t, guardOf(t, pids[0]), syscall.SIGKILL)
			p.sees("lambdalock: the guard has ended")
			kill(t, pids[0], syscall.SIGKILL)
		}},
		"Ctrl-C": {"trap - INT", func(_ *testing.T, _ *commandtest.Table, p *typist, _ []int) {
			p.types("\x03")
		}},
		"Ctrl-Z": {"", func(_ *testing.T, _ *commandtest.Table, p *typist, _ []int) {
			p.types("\x1a")
			p.sees("Stopped")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newTable(t)
			var down sync.Mutex
			env := through(t, table.URL, func() { down.Lock(); down.Unlock() }) //nolint:staticcheck // it waits while the store is down
			p := interactive(t, append(table.Env, env...))
			pids := startFamily(p, t.TempDir(), c.last, "")
			if c.end == nil {
				down.Lock()
				defer down.Unlock()
			} else {
				c.end(t, table, p, pids)
			}
			wantStill(t, table, pids)
		})
	}
}

// TestNothingGoesOnInBackground: the system stops a process group in the
// background of a terminal that touches it, and knows nothing of the sessions
// that the command has started.
func TestNothingGoesOnInBackground(t *testing.T) { // F15, F64
	t.Parallel()
	for name, touch := range map[string]string{
		"settings":       "stty sane </dev/tty",
		"reads":          "read -r line </dev/tty",
		"output, tostop": "stty tostop </dev/tty; echo output >/dev/tty",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newTable(t)
			p := interactive(t, table.Env)
			pids := startFamily(p, t.TempDir(), "(while [ ! -e touch ]; do sleep 0.01; done; "+touch+") &", " &")
			p.types(">touch; while ! jobs -s | grep Stopped; do sleep 0.1; done\n")
			p.sees("Stopped")
			wantStill(t, table, pids)
		})
	}
}

// TestNothingGoesOnWithoutTerminal: the same, as in a unit of systemd.
func TestNothingGoesOnWithoutTerminal(t *testing.T) { // F19, F64
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, p *commandtest.Process, pids []int){
		"kill -9": func(t *testing.T, _ *commandtest.Process, pids []int) {
			kill(t, pids[0], syscall.SIGKILL)
		},
		"TERM to all, kill -9": func(t *testing.T, _ *commandtest.Process, pids []int) {
			termAll(t, pids)
			kill(t, pids[0], syscall.SIGKILL)
		},
		"SEGV": func(t *testing.T, _ *commandtest.Process, pids []int) {
			kill(t, pids[0], syscall.SIGSEGV)
		},
		"TSTP": func(t *testing.T, _ *commandtest.Process, pids []int) { kill(t, pids[0], syscall.SIGTSTP) },
		"TTIN": func(t *testing.T, _ *commandtest.Process, pids []int) { kill(t, pids[0], syscall.SIGTTIN) },
		"TTOU": func(t *testing.T, _ *commandtest.Process, pids []int) { kill(t, pids[0], syscall.SIGTTOU) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table, folder := newTable(t), t.TempDir()
			c := prepare(t, table.Env, "exec", "--lease", "6s", "--key", "k", "--", "bash", writeFamily(t, folder, ""))
			c.Dir = folder
			p := begin(t, c)
			pids := processIDs(t, strings.TrimPrefix(p.Line(), "pids "))
			t.Cleanup(func() {
				for _, pid := range pids {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
				_ = c.Wait()
			})
			end(t, p, pids)
			wantStill(t, table, pids)
		})
	}
}

// TestNothingGoesOnWithoutPath: the same, as in a unit whose PATH names the
// folder of the command alone.
func TestNothingGoesOnWithoutPath(t *testing.T) { // F19, F64
	t.Parallel()
	table := newTable(t)
	p := begin(t, prepare(t, append(table.Env, "PATH=/opt/app/bin"), "exec", "--key", "k", "--", "/bin/sh", "-c",
		"PATH=$0; export PATH; trap 'echo caught' USR1; setsid sh -c 'echo $$; exec sleep 600 >/dev/null 2>&1' & wait; wait", os.Getenv("PATH")))
	left := p.Number()
	t.Cleanup(func() { _ = syscall.Kill(left, syscall.SIGKILL) })
	p.Signal(syscall.SIGUSR1)
	p.WantLine("caught") // so lambdalock watches the command, and its guard is there
	p.Signal(syscall.SIGKILL)
	p.End(137)
	wantGone(t, left)
}

// TestExecSparesOthers: a script may have started something before it becomes
// lambdalock, as an entry point of a container does.
func TestExecSparesOthers(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	c := prepare(t, table.Env, "exec", "--key", "k", "--", "sh", "-c", "echo ready; exec sleep 600")
	c.Args = append([]string{"sh", "-c", `sleep 600 >/dev/null 2>&1 & echo $!; exec "$0" "$@"`}, c.Args...)
	c.Path = "/bin/sh"
	p := begin(t, c)
	other := p.Number()
	defer func() { _ = syscall.Kill(other, syscall.SIGKILL) }()
	p.WantLine("ready")
	p.Signal(syscall.SIGTERM)
	p.End(143)
	if s := state(other); s == "" || s == "Z" {
		t.Error("what was there before the command was ended with it")
	}
}

// wantStill waits for the next holder, beside whom no process of the last one
// may run. The first of them is lambdalock.
func wantStill(t *testing.T, table *commandtest.Table, pids []int) {
	t.Helper()
	args := []string{"exec", "--wait", "1m", "--conflict-exit-code", "99", "--key", "k", "--", "ps", "-o", "pid=,stat=,args="}
	for _, pid := range pids[1:] {
		args = append(args, "-p", strconv.Itoa(pid))
	}
	next := command(t, table.Env, args...)
	for line := range strings.Lines(next.Stdout) {
		if !strings.ContainsAny(strings.Fields(line)[1][:1], "ZT") {
			t.Error("beside the next holder:", line)
		}
	}
	if !strings.Contains("01", strconv.Itoa(next.Status)) { // 1: no such process
		t.Error(next)
	}
}

// termAll sends SIGTERM as systemctl kill does: to lambdalock, to its guard and
// to what the command started.
func termAll(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range append([]int{guardOf(t, pids[0])}, pids...) {
		kill(t, pid, syscall.SIGTERM)
	}
}

// guardOf returns the process id of the guard.
func guardOf(t *testing.T, lambdalock int) int {
	t.Helper()
	out, _ := exec.Command("ps", "-A", "-o", "pid=,ppid=,args=").Output()
	for line := range strings.Lines(string(out)) {
		if field := strings.Fields(line); field[1] == strconv.Itoa(lambdalock) && strings.Contains(line, "guard of lambdalock") {
			pid, _ := strconv.Atoi(field[0])
			return pid
		}
	}
	t.Fatal("no guard in\n", string(out))
	return 0
}

// writeFamily writes the command and returns its file. It prints the process
// ids of lambdalock, of itself and of what it started. It is bash no longer
// then: bash may take Ctrl-C for one that its child handled, and loses one that
// comes between a line that it prints and an exec.
func writeFamily(t *testing.T, folder, last string) string {
	t.Helper()
	for file, text := range map[string]string{"family": family + last + "\necho pids $PPID $$ $(cat pids) >told\nexec tail -f told\n", "pids": ""} {
		expect.Must(t, os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600))
	}
	return filepath.Join(folder, "family")
}

// startFamily runs the family under a lock, and returns what processIDs does.
func startFamily(p *typist, folder, last, job string) []int {
	p.t.Helper()
	p.types("cd " + folder + "; lambdalock exec --lease 6s --key k -- bash " + writeFamily(p.t, folder, last) + job + "\n")
	p.sees("pids ")
	return processIDs(p.t, p.sees("\n"))
}

// processIDs reads the process ids of lambdalock, of the command and of what it
// started.
func processIDs(t *testing.T, text string) []int {
	t.Helper()
	var pids []int
	for text := range strings.FieldsSeq(text) {
		pid := expect.Value(strconv.Atoi(text))(t)
		pids = append(pids, pid)
	}
	if len(pids) != 5 {
		t.Fatalf("processes %v, want 5", pids)
	}
	return pids
}

func kill(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	expect.Must(t, syscall.Kill(pid, s))
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
