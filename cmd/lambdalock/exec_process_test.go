package main

import (
	"bufio"
	"bytes"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// process is a run of the command that goes on.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr bytes.Buffer
}

func begin(t *testing.T, c *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: c}
	detach(c)
	c.Stderr = &p.stderr
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin, p.stdout = stdin, bufio.NewReader(stdout)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// line is the next line that the command prints.
func (p *process) line() string {
	p.t.Helper()
	line, err := p.stdout.ReadString('\n')
	if err != nil {
		_ = p.cmd.Wait() // for what it said
		p.t.Fatalf("%v after %q; stderr:\n%s", err, line, p.stderr.String())
	}
	return strings.TrimSpace(line)
}

func (p *process) wantLine(want string) {
	p.t.Helper()
	if got := p.line(); got != want {
		p.t.Fatalf("it printed %q, want %q", got, want)
	}
}

func (p *process) say(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// end waits for the end.
func (p *process) end(status int, within ...string) run {
	p.t.Helper()
	rest, _ := io.ReadAll(p.stdout) // to its end
	_ = p.cmd.Wait()                // the status says how
	r := run{string(rest), p.stderr.String(), p.cmd.ProcessState.ExitCode()}
	r.expect(p.t, status, within...)
	return r
}
