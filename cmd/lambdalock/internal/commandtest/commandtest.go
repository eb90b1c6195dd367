// Package commandtest runs the command lambdalock as a user does, for the tests
// of its packages. The test binary is the command: see [Main].
package commandtest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

const variable = "LAMBDALOCK_TEST_COMMAND"

// Main is for TestMain: it runs the tests, or the command if this process was
// started to be that.
func Main(m *testing.M, command func()) {
	if os.Getenv(variable) != "" {
		command()
		return
	}
	dontIgnoreSignals()
	os.Exit(m.Run())
}

// Result is what a run of the command has printed, and its status as a shell
// reports it.
type Result struct {
	Stdout, Stderr string
	Status         int
	Signaled       bool // a signal ended it
}

func newResult(stdout, stderr string, state *os.ProcessState) Result {
	r := Result{stdout, stderr, state.ExitCode(), false}
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		r.Status, r.Signaled = 128+int(w.Signal()), true
	}
	return r
}

func (r Result) String() string { return r.Stdout + r.Stderr }

// noAWS is an environment that knows nothing of AWS.
var noAWS = []string{
	"LOCK_TABLE_NAME=", "AWS_ENDPOINT_URL_DYNAMODB=", "AWS_PROFILE=", "AWS_REGION=", "AWS_DEFAULT_REGION=",
	"AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_SESSION_TOKEN=", "AWS_CONFIG_FILE=/nowhere", "AWS_SHARED_CREDENTIALS_FILE=/nowhere",
	"AWS_EC2_METADATA_DISABLED=true", "GORACE=atexit_sleep_ms=0",
}

// Environ returns the environment of a process that is the command, or starts
// it: one that knows nothing of AWS, and env.
func Environ(env ...string) []string {
	return append(append(append(os.Environ(), noAWS...), variable+"=1"), env...)
}

// Prepare makes a run of the command that is not begun, in a folder of its own.
func Prepare(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], args...)
	c.Env = Environ(env...)
	c.Dir = t.TempDir()
	return c
}

// Execute runs what Prepare has made.
func Execute(t *testing.T, c *exec.Cmd) Result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return newResult(stdout.String(), stderr.String(), c.ProcessState)
}

// Run runs the command.
func Run(t *testing.T, env []string, args ...string) Result {
	t.Helper()
	return Execute(t, Prepare(t, env, args...))
}

// Expect checks the exit status, and that the texts are in what was printed.
func (r Result) Expect(t *testing.T, status int, within ...string) {
	t.Helper()
	if r.Status != status {
		t.Errorf("status %d, want %d\n%s", r.Status, status, r)
	}
	for _, want := range within {
		if !strings.Contains(r.String(), want) {
			t.Errorf("no %q in\n%s", want, r)
		}
	}
	if twice := regexp.MustCompile(`(?m)^lambdalock: .*\blambdalock: .*`).FindString(r.Stderr); twice != "" {
		t.Errorf("it says who speaks more than once: %s", twice)
	}
}
