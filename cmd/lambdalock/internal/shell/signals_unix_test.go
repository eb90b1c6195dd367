//go:build unix

package shell_test

import (
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
)

// state is the state of a process as ps reports it, or "" if there is none.
func state(pid int) string {
	out, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return strings.TrimSpace(string(out) + " ")[:min(1, len(strings.TrimSpace(string(out))))]
}

func TestExecSignals(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	for name, s := range map[string]syscall.Signal{
		"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
	} {
		t.Run(name+", caught", func(t *testing.T) {
			t.Parallel()
			p := begin(t, prepare(t, table.Env, "exec", "--key", name+"c", "--", "sh", "-c", "trap 'echo caught; exit 9' "+name+"; echo ready; while read line; do :; done; while :; do sleep 0.01; done"))
			p.WantLine("ready")
			p.Signal(s)
			p.WantLine("caught")
			if r := p.End(9); r.Stdout != "" || r.Stderr != "" {
				t.Errorf("delivered more than once, or something said: %q %q", r.Stdout, r.Stderr)
			}
		})
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begin(t, prepare(t, table.Env, "exec", "--key", name, "--", "sh", "-c", "echo ready; exec sleep 600"))
			p.WantLine("ready")
			p.Signal(s)
			if r := p.End(128 + int(s)); !r.Signaled {
				t.Error("a shell does not learn of the signal")
			}
			hold(t, table, lock.Key{Name: name}) // it was released
		})
	}
}

// TestExecSignalsGroup: what the command started gets the signal too, and the
// lock is held until it has ended.
func TestExecSignalsGroup(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	// The grandchild ends only once it is told so, after its parent has ended.
	fifo := filepath.Join(t.TempDir(), "fifo")
	expect.Must(t, syscall.Mkfifo(fifo, 0o600))
	p := begin(t, prepare(t, table.Env, "exec", "--lease", "10m", "--key", "k", "--", "sh", "-c",
		`sh -c 'trap "echo stopping; read line <\"'"$1"'\"; echo stopped; exit" TERM; echo ready; while :; do sleep 0.01; done' & wait`, "sh", fifo))
	p.WantLine("ready")
	p.Signal(syscall.SIGTERM)
	p.WantLine("stopping")
	// Nothing reports that lambdalock has noticed the end of the command, so this
	// waits for what must not happen.
	command(t, table.Env, "exec", "--wait", "1s", "--key", "k", "--", "true").Expect(t, 1, "is held by sh on ")
	expect.Must(t, os.WriteFile(fifo, []byte("\n"), 0o600))
	p.WantLine("stopped")
	p.End(143)
	hold(t, table, lock.Key{Name: "k"})
}

// TestExecInterruptedByStatus: a command may make a status of a signal itself.
// Then nobody knows how far it had come, unlike with another status.
func TestExecInterruptedByStatus(t *testing.T) { // F19
	t.Parallel()
	table := newTable(t)
	for name, c := range map[string]struct{ own, next int }{
		"that of the signal":  {143, 76},
		"that of another one": {137, 76}, // docker run, of what ends too late
		"of its own":          {5, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"exec", "--key", name, "--event", "e", "--on-interrupted", "fail", "--", "sh", "-c"}
			p := begin(t, prepare(t, table.Env, append(args, fmt.Sprintf("trap 'exit %d' TERM; echo ready; while :; do sleep 0.01; done", c.own))...))
			p.WantLine("ready")
			p.Signal(syscall.SIGTERM)
			p.End(c.own)
			command(t, table.Env, append(args, "echo ran")...).Expect(t, c.next)
		})
	}
}

// TestExecWaitInterrupted: a signal ends the wait, and the command does not
// run.
func TestExecWaitInterrupted(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table, waiting := newTable(t), make(chan struct{}, 100)
			lk := hold(t, table, lock.Key{Name: "k"})
			env := through(t, table.URL, func() { waiting <- struct{}{} })
			p := begin(t, prepare(t, append(table.Env, env...), "exec", "--wait", "10m", "--key", "k", "--", "echo", "ran"))
			<-waiting
			<-waiting // the first one was refused
			p.Signal(s)
			if r := p.End(128 + int(s)); r.Stdout != "" || !r.Signaled {
				t.Errorf("the command ran, or no signal ended lambdalock: %+v", r)
			}
			expect.Must(t, lk.Release())
			hold(t, table, lock.Key{Name: "k"})
		})
	}
}

// TestExecWaitGoesOn: a wait survives signals that end no program, and Ctrl-Z.
func TestExecWaitGoesOn(t *testing.T) { // F64
	t.Parallel()
	table, waiting := newTable(t), make(chan struct{}, 1000)
	lk := hold(t, table, lock.Key{Name: "k"})
	env := through(t, table.URL, func() { waiting <- struct{}{} })
	p := begin(t, prepare(t, append(table.Env, env...), "exec", "--wait", "10m", "--key", "k", "--", "echo", "ran"))
	<-waiting
	<-waiting // the first one was refused
	for _, s := range []syscall.Signal{syscall.SIGWINCH, syscall.SIGPIPE, syscall.SIGCONT, syscall.SIGCHLD, syscall.SIGURG, syscall.SIGXFSZ} {
		p.Signal(s)
	}
	for _, s := range []syscall.Signal{syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU} {
		p.Signal(s)
		for state(p.Cmd.Process.Pid) != "T" {
			time.Sleep(5 * time.Millisecond) // nothing reports that a process is stopped
		}
		p.Signal(syscall.SIGCONT)
	}
	expect.Must(t, lk.Release())
	p.WantLine("ran")
	p.End(0)
}

// through returns the variables that lead a process to an endpoint through a
// proxy that calls seen with every request. The proxy ends with the test.
func through(t *testing.T, endpoint string, seen func()) []string {
	t.Helper()
	target := expect.Value(url.Parse(endpoint))(t)
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			seen()
			r.SetURL(target)
		},
		ErrorLog: log.New(io.Discard, "", 0),
	})
	t.Cleanup(proxy.Close)
	return []string{"AWS_ENDPOINT_URL_DYNAMODB=" + proxy.URL}
}

// TestExecIgnoredSignals: nohup stays in force.
func TestExecIgnoredSignals(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	c := prepare(t, table.Env, "exec", "--key", "k", "--", "sh", "-c", "echo $$; read line; echo done")
	c.Args = append([]string{"sh", "-c", `trap "" HUP INT; exec "$0" "$@"`}, c.Args...)
	c.Path = "/bin/sh"
	p := begin(t, c)
	pid := p.Number()
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} {
		p.Signal(s)
		expect.Must(t, syscall.Kill(pid, s))
	}
	p.Say("go")
	p.WantLine("done")
	p.End(0)
}

// TestExecSignalsStopped: a signal ends a command that was stopped, such as one
// that tried to read from a terminal in whose background it is.
func TestExecSignalsStopped(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	for name, s := range map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begin(t, prepare(t, table.Env, "exec", "--key", name, "--", "sh", "-c", "echo $$; kill -TTIN $$; exec sleep 600"))
			pid := p.Number()
			for state(pid) != "T" {
				time.Sleep(5 * time.Millisecond) // nothing reports that somebody else's child is stopped
			}
			p.Signal(s)
			p.End(128 + int(s))
			hold(t, table, lock.Key{Name: name})
		})
	}
}

// TestExecSuspended: a command goes on after a stop that the lease survived.
func TestExecSuspended(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	p := begin(t, prepare(t, table.Env, "exec", "--lease", "10m", "--key", "k", "--", "sh", "-c", "echo $$; read line; echo done"))
	pid := p.Number()
	p.Signal(syscall.SIGTSTP)
	for state(pid) != "T" || state(p.Cmd.Process.Pid) != "T" {
		time.Sleep(5 * time.Millisecond) // nothing reports that somebody else's child is stopped
	}
	p.Signal(syscall.SIGCONT)
	p.Say("go")
	p.WantLine("done")
	p.End(0)
}
