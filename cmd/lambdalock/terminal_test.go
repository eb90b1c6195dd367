//go:build linux

package main

import (
	"bufio"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/commandtest"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/rowtest"
	"github.com/lambdalock/lambdalock/lock"
)

// TestQuestionInTerminal: a question is seen wherever the output goes.
func TestQuestionInTerminal(t *testing.T) {
	t.Parallel()
	table := commandtest.NewTable(t, "locks")
	rowtest.Acquire(t, table.Store, "the night shift", time.Hour, lock.Key{Name: "k"}, func(o *lock.Options) { o.Namespace = "" })
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
			terminal, user := commandtest.OpenTerminal(t)
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
