package shell_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/commandtest"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
)

// typist types into a terminal and reads what is on its screen.
type typist struct {
	t      *testing.T
	user   *os.File
	screen chan string
	text   string // not yet looked for
}

// inTerminal starts a program in a terminal of its own.
func inTerminal(t *testing.T, c *exec.Cmd) *typist {
	t.Helper()
	terminal, user := commandtest.OpenTerminal(t)
	c.Stdin, c.Stdout, c.Stderr = terminal, terminal, terminal
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	expect.Must(t, c.Start())
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
	self := expect.Value(filepath.Abs(os.Args[0]))(t)
	expect.Must(t, os.Symlink(self, filepath.Join(bin, "lambdalock")))
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

// TestExecInTerminal: in the foreground of a terminal a command can read, and
// gets Ctrl-C once.
func TestExecInTerminal(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	terminal, user := commandtest.OpenTerminal(t)
	c := prepare(t, table.Env, "exec", "--key", "k", "--", "sh", "-c",
		"trap 'echo caught' INT; read line; echo got $line; while :; do read line && break; done; echo got $line")
	c.Stdin, c.Stdout, c.Stderr = terminal, terminal, terminal
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	expect.Must(t, c.Start())
	_ = terminal.Close()
	screen, caught := bufio.NewScanner(user), 0
	wait := func(want string) {
		t.Helper()
		for screen.Scan() {
			caught += strings.Count(screen.Text(), "caught")
			if strings.HasSuffix(strings.TrimSpace(screen.Text()), want) {
				return
			}
		}
		t.Fatalf("the terminal ended before %q: %v", want, screen.Err())
	}
	for _, step := range []struct{ keys, want string }{{"one\n", "got one"}, {"\x03", "caught"}, {"two\n", "got two"}} {
		expect.Value(user.WriteString(step.keys))(t)
		wait(step.want)
	}
	expect.OK(t, c.Wait())
	if caught != 1 {
		t.Errorf("the command got SIGINT %d times", caught)
	}
	for screen.Scan() {
		t.Errorf("more on the screen: %q", screen.Text())
	}
	hold(t, table, lock.Key{Name: "k"})
}

// TestExecSignalsInTerminal: a signal to lambdalock alone comes once. A second
// one makes some commands give up what the first one began.
func TestExecSignalsInTerminal(t *testing.T) {
	t.Parallel()
	p := inTerminal(t, prepare(t, newTable(t).Env, "exec", "--key", "k", "--", "sh", "-c",
		`trap 'echo caught.' TERM; trap 'last=1' USR1; echo "$PPID ready"; until [ "$last" ]; do sleep 0.01; done; echo over`))
	pid := expect.Value(strconv.Atoi(p.sees(" ready")))(t)
	for range 10 { // the system makes one of two that are not handled yet
		kill(t, pid, syscall.SIGTERM)
		p.sees("caught.")
	}
	kill(t, pid, syscall.SIGUSR1) // passed on after all of the others
	if more := p.sees("over"); strings.Contains(more, "caught") {
		t.Errorf("the command got SIGTERM more often than lambdalock: %q", more)
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
			p := interactive(t, newTable(t).Env)
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
		table, asked := newTable(t), make(chan struct{}, 1000)
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
			p := interactive(t, newTable(t).Env)
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
