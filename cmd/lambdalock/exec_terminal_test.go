//go:build linux

package main

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

	"github.com/lambdalock/lambdalock/internal/local/localtable"
	"github.com/lambdalock/lambdalock/lock"
)

// typist types into a terminal and reads what is on its screen.
type typist struct {
	t      *testing.T
	user   *os.File
	screen chan string
	text   string // not yet looked for
}

// patience bounds every wait for a terminal.
const patience = 30 * time.Second

// inTerminal starts a program in a terminal of its own.
func inTerminal(t *testing.T, c *exec.Cmd) *typist {
	t.Helper()
	terminal, user := openTerminal(t)
	c.Stdin, c.Stdout, c.Stderr = terminal, terminal, terminal
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_ = terminal.Close()
	p := &typist{t: t, user: user, screen: make(chan string)}
	go func() {
		defer close(p.screen)
		buffer := make([]byte, 4096)
		for {
			n, err := user.Read(buffer)
			if err != nil {
				return
			}
			select {
			case p.screen <- string(buffer[:n]):
			case <-t.Context().Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return p
}

// interactive starts bash, with job control, and with lambdalock in its PATH.
func interactive(t *testing.T, env []string) *typist {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("this test needs bash")
	}
	bin := t.TempDir()
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(bin, "lambdalock")); err != nil {
		t.Fatal(err)
	}
	c := prepare(t, append(env, "PATH="+bin+":"+os.Getenv("PATH"), "PS1=", "TERM=dumb", "HISTFILE="), "--norc", "--noprofile", "--noediting", "-i")
	c.Path, c.Args[0] = bash, "bash"
	p := inTerminal(t, c)
	p.types("stty -echo; echo here we g''o\n")
	p.sees("here we go")
	return p
}

func (p *typist) types(keys string) {
	p.t.Helper()
	if _, err := p.user.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// sees waits for a text, and returns what is before it.
func (p *typist) sees(want string) string {
	p.t.Helper()
	late := time.After(patience)
	for {
		if before, after, ok := strings.Cut(p.text, want); ok {
			p.text = after
			return before
		}
		select {
		case more, ok := <-p.screen:
			p.text += more
			if !ok {
				p.t.Fatalf("the terminal was closed before %q: %q", want, p.text)
			}
		case <-late:
			p.t.Fatalf("no %q in %v: %q", want, patience, p.text)
		}
	}
}

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
		last string // command of the script
		end  func(t *testing.T, table *localtable.Table, p *typist, lambdalock int)
	}{
		"lost network": {"live", nil},
		"release": {"live", func(t *testing.T, table *localtable.Table, p *typist, _ int) {
			breakLock(t, table, "k")
			p.sees("the lock was lost, because somebody else released or took it")
			p.types("echo ov''er\n")
			p.sees("over")
		}},
		"kill -9": {"live", func(t *testing.T, _ *localtable.Table, _ *typist, lambdalock int) {
			kill(t, lambdalock, syscall.SIGKILL)
		}},
		"TERM": {"trap - TERM; live", func(t *testing.T, _ *localtable.Table, _ *typist, lambdalock int) {
			kill(t, lambdalock, syscall.SIGTERM)
		}},
		"Ctrl-C": {"trap - INT; live", func(_ *testing.T, _ *localtable.Table, p *typist, _ int) {
			p.types("\x03")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := lockTableFor(t)
			var down sync.Mutex
			env := through(t, table.URL, func() { down.Lock(); down.Unlock() }) //nolint:staticcheck // it waits while the store is down
			p := interactive(t, append(table.Env, env...))
			pids := startFamily(p, t.TempDir(), c.last)
			if c.end == nil {
				down.Lock()
				defer down.Unlock()
			} else {
				c.end(t, table, p, pids[0])
			}
			args := []string{"exec", "--wait", "1m", "--key", "k", "--", "ps", "-o", "pid=,stat=,args="}
			for _, pid := range pids[1:] {
				args = append(args, "-p", strconv.Itoa(pid))
			}
			next := command(t, table.Env, args...)
			for line := range strings.Lines(next.stdout) {
				if !strings.HasPrefix(strings.Fields(line)[1], "Z") {
					t.Error("beside the next holder:", line)
				}
			}
			if !strings.Contains("01", strconv.Itoa(next.status)) { // 1: no such process
				t.Error(next)
			}
		})
	}
}

// startFamily runs the family under a lock, and returns the process ids of
// lambdalock, of the command and of what it started.
func startFamily(p *typist, folder, last string) []int {
	p.t.Helper()
	for file, text := range map[string]string{"family": family + "echo pids $PPID $$ $(cat pids)\n" + last, "pids": ""} {
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

// TestCtrlCEndsALoop: the shell learns that Ctrl-C ended a command, or the wait
// for its turn, and does not go on with the next one.
func TestCtrlCEndsALoop(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ command, begun string }{
		"default": {`echo begun; exec sleep 600`, "begun"},
		"caught":  {`trap "exit 130" INT; echo begun; while :; do sleep 0.01; done`, "begun"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := interactive(t, lockTableFor(t).Env)
			p.types("while :; do lambdalock exec --key k -- sh -c '" + c.command + "'; done\n")
			p.sees(c.begun)
			p.types("\x03")
			p.types("echo status $?.\n")
			if between := p.sees("status 130."); strings.Contains(between, c.begun) {
				t.Errorf("the loop went on: %q", between)
			}
		})
	}
	t.Run("waiting", func(t *testing.T) {
		t.Parallel()
		table, asked := lockTableFor(t), make(chan struct{}, 1000)
		hold(t, table, lock.Key{Name: "k"})
		p := interactive(t, append(table.Env, through(t, table.URL, func() { asked <- struct{}{} })...))
		p.types("while :; do lambdalock exec --wait 10m --key k -- true; echo agai''n; done\n")
		<-asked
		p.types("\x03")
		p.types("echo status $?.\n")
		if between := p.sees("status 130."); strings.Contains(between, "again") {
			t.Errorf("the loop went on: %q", between)
		}
	})
}

// TestJobControl: a command is stopped, continued, and taken from the
// background into the foreground, where it can read.
func TestJobControl(t *testing.T) {
	t.Parallel()
	const command = `lambdalock exec --lease 10m --key k -- sh -c 'echo ready; read line; echo "got $line"'`
	for name, start := range map[string]func(p *typist){
		"Ctrl-Z": func(p *typist) {
			p.types(command + "\n")
			p.sees("ready")
			p.types("\x1a")
			p.sees("Stopped")
		},
		"background": func(p *typist) {
			p.types(command + " &\n")
			p.sees("ready")
			p.types("wait; echo waited\n") // until it has tried to read
			p.sees("waited")
		},
		"pipeline": func(p *typist) {
			p.types(command + " | cat\n")
			p.sees("ready")
			p.types("\x1a")
			p.sees("Stopped")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := interactive(t, lockTableFor(t).Env)
			start(p)
			p.types("fg\n")
			p.sees("lambdalock exec") // bash says which job
			p.types("hello\n")
			p.sees("got hello")
			p.types("echo status $?.\n")
			p.sees("status 0.")
		})
	}
}

// TestExecReaps: orphans of the command do not stay as zombies.
func TestExecReaps(t *testing.T) {
	t.Parallel()
	table := lockTableFor(t)
	p := begin(t, prepare(t, table.Env, "exec", "--key", "k", "--", "sh", "-c", `echo $PPID; sh -c 'sleep 0.1 & echo $!'; read line`))
	parent, orphan := p.number(), p.number()
	for late := time.Now().Add(patience); state(orphan) != ""; {
		if time.Now().After(late) {
			t.Fatalf("process %d, a child of %d, is in state %s", orphan, parent, state(orphan))
		}
		time.Sleep(5 * time.Millisecond) // nothing reports the end of somebody else's child
	}
	p.say("go")
	p.end(0)
}
