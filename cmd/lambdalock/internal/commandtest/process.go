package commandtest

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// Process is a run of the command that goes on.
type Process struct {
	Cmd    *exec.Cmd
	Stdin  io.WriteCloser
	t      *testing.T
	stdout *bufio.Reader
	stderr bytes.Buffer
}

// Begin starts a run, without the terminal of the tests.
func Begin(t *testing.T, c *exec.Cmd) *Process {
	t.Helper()
	p := &Process{Cmd: c, t: t}
	Detach(c)
	c.Stderr = &p.stderr
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Stdin, p.stdout = stdin, bufio.NewReader(stdout)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// Line returns the next line that the command prints.
func (p *Process) Line() string {
	p.t.Helper()
	line, err := p.stdout.ReadString('\n')
	if err != nil {
		_ = p.Cmd.Wait() // for what it said
		p.t.Fatalf("%v after %q; stderr:\n%s", err, line, p.stderr.String())
	}
	return strings.TrimSpace(line)
}

// WantLine fails the test if the next line is another one.
func (p *Process) WantLine(want string) {
	p.t.Helper()
	if got := p.Line(); got != want {
		p.t.Fatalf("it printed %q, want %q", got, want)
	}
}

// Number returns the next line, a number such as a process id.
func (p *Process) Number() int {
	p.t.Helper()
	n, err := strconv.Atoi(p.Line())
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// Say gives the command a line to read.
func (p *Process) Say(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.Stdin, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// Signal sends lambdalock a signal.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// End waits for the end, and checks it as [Result.Expect] does.
func (p *Process) End(status int, within ...string) Result {
	p.t.Helper()
	rest, _ := io.ReadAll(p.stdout) // to its end
	_ = p.Cmd.Wait()                // the status says how
	r := newResult(string(rest), p.stderr.String(), p.Cmd.ProcessState)
	r.Expect(p.t, status, within...)
	return r
}
