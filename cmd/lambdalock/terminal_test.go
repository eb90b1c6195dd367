//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lambdalock/lambdalock/lock"
)

// openTerminal returns a terminal and the side of its keyboard and screen.
func openTerminal(t *testing.T) (terminal, user *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	t.Cleanup(func() { _ = user.Close() })
	number, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return terminal, user
}

// TestExecInTerminal: in the foreground of a terminal a command can read, and
// gets Ctrl-C once.
func TestExecInTerminal(t *testing.T) {
	t.Parallel()
	table := lockTableFor(t)
	terminal, user := openTerminal(t)
	c := prepare(t, table.Env, "exec", "--key", "k", "--", "sh", "-c",
		"trap 'echo caught' INT; read line; echo got $line; while :; do read line && break; done; echo got $line")
	c.Stdin, c.Stdout, c.Stderr = terminal, terminal, terminal
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
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
		if _, err := user.WriteString(step.keys); err != nil {
			t.Fatal(err)
		}
		wait(step.want)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	if caught != 1 {
		t.Errorf("the command got SIGINT %d times", caught)
	}
	for screen.Scan() {
		t.Errorf("more on the screen: %q", screen.Text())
	}
	hold(t, table, lock.Key{Name: "k"})
}

// TestQuestionInTerminal: a question is seen wherever the output goes.
func TestQuestionInTerminal(t *testing.T) {
	t.Parallel()
	table := lockTableFor(t)
	hold(t, table, lock.Key{Name: "k"})
	for _, c := range []struct {
		name, answer, want string
		status             int
	}{
		{"no", "\n", "nothing was changed", 1},
		{"end of input", "\x04", "nothing was changed", 1},
		{"interrupt", "\x03", "interrupted", 130},
		{"yes", "y\n", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			terminal, user := openTerminal(t)
			p := prepare(t, table.Env, "release", "k")
			var out strings.Builder
			p.Stdin, p.Stdout, p.Stderr = terminal, &out, terminal
			p.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			_ = terminal.Close()
			screen := bufio.NewReader(user)
			if question, err := screen.ReadString(']'); question != "Release /k? [y/N]" {
				t.Fatalf("the question is %q (%v)", question, err)
			}
			if _, err := user.WriteString(c.answer); err != nil {
				t.Fatal(err)
			}
			rest, _ := io.ReadAll(screen) // a terminal that is closed has an error
			_ = p.Wait()
			if got := p.ProcessState.ExitCode(); got != c.status || !strings.Contains(string(rest), c.want) {
				t.Errorf("status %d, want %d with %q: %q", got, c.status, c.want, rest)
			}
			if released := strings.Contains(out.String(), "Released /k."); released != (c.status == 0) {
				t.Errorf("it printed\n%s", out.String())
			}
		})
	}
}
