//go:build unix

package integration_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// TestShell runs the tasks of examples/shell with the command that users
// install, over a Redis server: of two runs of one task one works and the other
// says so, and another task runs beside them.
func TestShell(t *testing.T) {
	server := servers.Redis(t)
	bin := filepath.Dir(buildCommand(t))
	task := func(work, name string) *exec.Cmd {
		c := exec.CommandContext(t.Context(), "../examples/shell/task", name)
		c.Env = append(os.Environ(), "LAMBDALOCK_STORE="+server.Endpoint, "PATH="+bin+":"+os.Getenv("PATH"), "WORK="+work)
		return c
	}

	hello := task("cat", "main:hello") // until its input ends
	stdin, err := hello.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := hello.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	expect.Must(t, hello.Start())
	lines := bufio.NewReader(stdout)
	if line, err := lines.ReadString('\n'); line != "Hello begins\n" {
		t.Fatal(line, err)
	}

	var said bytes.Buffer
	second := task("true", "main:hello")
	second.Stderr = &said
	out, err := second.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || len(out) > 0 {
		t.Errorf("a second run of a task: %v, output %q; want status 1", err, out)
	}
	if line := said.String(); strings.Count(line, "\n") != 1 || !strings.HasPrefix(line, `lambdalock: "main:hello" is held by sh on `) {
		t.Errorf("the second run said %q", line)
	}
	if out, err := task("true", "main:world").CombinedOutput(); err != nil || string(out) != "World begins\nWorld ends\n" {
		t.Errorf("another task: %v, output %q", err, out)
	}

	expect.Must(t, stdin.Close())
	rest, _ := io.ReadAll(lines) // to its end
	if err := hello.Wait(); err != nil || string(rest) != "Hello ends\n" {
		t.Errorf("the first run: %v, output %q", err, rest)
	}
	if out, err := task("true", "main:hello").CombinedOutput(); err != nil || string(out) != "Hello begins\nHello ends\n" {
		t.Errorf("a later run: %v, output %q", err, out)
	}
}
