//go:build unix

package main

import (
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock"
)

// dontIgnoreSignals makes the processes of the tests start with the system's
// handling of signals, also under nohup and in the background of a script: what
// a process ignores, its children ignore too, unlike what it catches.
func dontIgnoreSignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGTSTP} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// detach takes the terminal, if there is one, away from a process.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// number is a process id that the command prints.
func (p *process) number() int {
	p.t.Helper()
	n, err := strconv.Atoi(p.line())
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// wantGone waits until a process has ended. Those that lambdalock started are
// zombies until their new parent notices.
func wantGone(t *testing.T, pid int) {
	t.Helper()
	for state(pid) != "" && state(pid) != "Z" {
		if t.Context().Err() != nil {
			return
		}
		time.Sleep(5 * time.Millisecond) // nothing reports the end of somebody else's child
	}
}

// state is the state of a process as ps reports it, or "" if there is none.
func state(pid int) string {
	out, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return strings.TrimSpace(string(out) + " ")[:min(1, len(strings.TrimSpace(string(out))))]
}

func TestExecSignals(t *testing.T) {
	t.Parallel()
	table := lockTableFor(t)
	for name, s := range map[string]syscall.Signal{
		"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
	} {
		t.Run(name+", caught", func(t *testing.T) {
			t.Parallel()
			p := begin(t, prepare(t, table.Env, "exec", "--key", name+"c", "--", "sh", "-c", "trap 'echo caught; exit 9' "+name+"; echo ready; while read line; do :; done; while :; do sleep 0.01; done"))
			p.wantLine("ready")
			p.signal(s)
			p.wantLine("caught")
			if r := p.end(9); r.stdout != "" || r.stderr != "" {
				t.Errorf("delivered more than once, or something said: %q %q", r.stdout, r.stderr)
			}
		})
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begin(t, prepare(t, table.Env, "exec", "--key", name, "--", "sh", "-c", "echo ready; exec sleep 600"))
			p.wantLine("ready")
			p.signal(s)
			p.end(128 + int(s))
			hold(t, table, lock.Key{Name: name}) // it was released
		})
	}
}

// TestExecSignalsGroup: what the command started gets the signal too, and the
// lock is held until it has ended.
func TestExecSignalsGroup(t *testing.T) {
	t.Parallel()
	table := lockTableFor(t)
	// The grandchild ends only once it is told so, after its parent has ended.
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	p := begin(t, prepare(t, table.Env, "exec", "--lease", "10m", "--key", "k", "--", "sh", "-c",
		`sh -c 'trap "echo stopping; read line <\"'"$1"'\"; echo stopped; exit" TERM; echo ready; while :; do sleep 0.01; done' & wait`, "sh", fifo))
	p.wantLine("ready")
	p.signal(syscall.SIGTERM)
	p.wantLine("stopping")
	// Nothing reports that lambdalock has noticed the end of the command, so this
	// waits for what must not happen.
	command(t, table.Env, "exec", "--wait", "1s", "--key", "k", "--", "true").expect(t, 1, "is held by sh on ")
	if err := os.WriteFile(fifo, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.wantLine("stopped")
	p.end(143)
	hold(t, table, lock.Key{Name: "k"})
}

// TestExecWaitInterrupted: a signal ends the wait, and the command does not
// run.
func TestExecWaitInterrupted(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table, waiting := lockTableFor(t), make(chan struct{}, 100)
			lk := hold(t, table, lock.Key{Name: "k"})
			env := through(t, table.URL, func() { waiting <- struct{}{} })
			p := begin(t, prepare(t, append(table.Env, env...), "exec", "--wait", "10m", "--key", "k", "--", "echo", "ran"))
			<-waiting
			<-waiting // the first one was refused
			p.signal(s)
			if r := p.end(128 + int(s)); r.stdout != "" {
				t.Errorf("the command ran: %q", r.stdout)
			}
			if err := lk.Release(); err != nil {
				t.Fatal(err)
			}
			hold(t, table, lock.Key{Name: "k"})
		})
	}
}

// through returns the variables that lead a process to an endpoint through a
// proxy that calls seen with every request. The proxy ends with the test.
func through(t *testing.T, endpoint string, seen func()) []string {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
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
	table := lockTableFor(t)
	c := prepare(t, table.Env, "exec", "--key", "k", "--", "sh", "-c", "echo $$; read line; echo done")
	c.Args = append([]string{"sh", "-c", `trap "" HUP INT; exec "$0" "$@"`}, c.Args...)
	c.Path = "/bin/sh"
	p := begin(t, c)
	pid := p.number()
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} {
		p.signal(s)
		if err := syscall.Kill(pid, s); err != nil {
			t.Fatal(err)
		}
	}
	p.say("go")
	p.wantLine("done")
	p.end(0)
}

// TestExecKilled: the command ends with lambdalock, and the name is free once
// the lease has ended.
func TestExecKilled(t *testing.T) { // F19
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("only Linux and FreeBSD end a command with its parent:", err)
	}
	table := lockTableFor(t)
	p := begin(t, prepare(t, table.Env, "exec", "--lease", "6s", "--key", "k", "--", "sh", "-c",
		"trap 'echo caught' USR1; echo $$; sh -c 'trap \"\" USR1; echo $$; while :; do sleep 0.01; done' & wait; wait"))
	pid, started := p.number(), p.number() // the command, and what it started
	p.signal(syscall.SIGUSR1)
	p.wantLine("caught") // so lambdalock watches the command, and its guard is there
	p.signal(syscall.SIGKILL)
	p.end(-1)
	wantGone(t, pid)
	wantGone(t, started)
	command(t, table.Env, "exec", "--key", "k", "--", "echo", "ran").expect(t, 1, "is held by sh on ")
	until := rowOf(t, table, "k").Until
	next := command(t, table.Env, "exec", "--wait", "1m", "--key", "k", "--", "date", "+%s%N")
	next.expect(t, 0, `lambdalock: "k" was not released by sh on `, ", whose lease has ended")
	if began, err := strconv.ParseInt(strings.TrimSpace(next.stdout), 10, 64); err != nil || began <= until.UnixNano() {
		t.Errorf("taken over at %d, before the lease ended at %d (%v)", began, until.UnixNano(), err)
	}
}

// TestExecLost: a command whose lease is lost is ended before the next one
// starts, even if it ignores that it should end (F20).
func TestExecLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, last string }{
		"ends":         {"trap 'echo ending; exit 0' TERM; ", "ending\n"},
		"ignores TERM": {"trap 'echo ignored' TERM; ", "ignored\n"},
		"stopped":      {"kill -STOP $$; ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := lockTableFor(t)
			var down sync.Mutex
			env := through(t, table.URL, func() { down.Lock(); down.Unlock() }) //nolint:staticcheck // it waits while the store is down
			p := begin(t, prepare(t, append(table.Env, env...), "exec", "--lease", "4s", "--key", "k", "--", "sh", "-c", "echo $$; "+c.script+"while :; do sleep 0.01; done"))
			pid := p.number()
			down.Lock()
			defer down.Unlock()
			next := command(t, table.Env, "exec", "--wait", "1m", "--key", "k", "--", "sh", "-c",
				fmt.Sprintf("ps -o stat= -p %d | grep -v Z; exit 0", pid))
			next.expect(t, 0)
			if next.stdout != "" {
				t.Errorf("the first command overlaps the second one: %q", next.stdout)
			}
			r := p.end(75, `"k": the lease could not be renewed in time: the command is being ended: `)
			if n := strings.Count(r.stderr, "lambdalock: \""); n != 1 { // the shell may say something too
				t.Errorf("%d lines of our own, want one", n)
			}
			if !strings.HasSuffix(r.stdout, c.last) {
				t.Errorf("its last words are %q, want %q", r.stdout, c.last)
			}
		})
	}
}

// TestExecBroken: somebody broke the lock, and the next renewal shows it. A
// lease of 4 s would be lost if that renewal came 0.8 s late.
func TestExecBroken(t *testing.T) { // F20
	t.Parallel()
	table := lockTableFor(t)
	p := begin(t, prepare(t, table.Env, "exec", "--lease", "6s", "--key", "k", "--", "sh", "-c", "echo ready; exec sleep 600"))
	p.wantLine("ready")
	breakLock(t, table, "k")
	lk := hold(t, table, lock.Key{Name: "k"})
	p.end(75, "the lock was lost, because somebody else released or took it")
	if err := lk.Release(); err != nil {
		t.Error("the next owner:", err)
	}
}

// TestExecStopped: lambdalock is stopped for longer than its lease.
func TestExecStopped(t *testing.T) { // F15
	t.Parallel()
	for name, c := range map[string]struct {
		signal syscall.Signal
		stops  bool // the command as well
	}{"TSTP": {syscall.SIGTSTP, true}, "STOP": {syscall.SIGSTOP, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := lockTableFor(t)
			// The command starts no processes: one that waits for another to start is in
			// state D, stopped or not. A lease of 4 s would be lost if this signal took
			// more than 1.6 s.
			p := begin(t, prepare(t, table.Env, "exec", "--lease", "9s", "--key", "k", "--", "sh", "-c", "echo $$; exec sleep 600"))
			pid := p.number()
			p.signal(c.signal)
			// Once the name was taken over, the lease has ended for everybody.
			next := command(t, table.Env, "exec", "--lease", "10m", "--wait", "1m", "--key", "k", "--", "ps", "-o", "stat=", "-p", strconv.Itoa(pid))
			next.expect(t, 0)
			if stopped := strings.HasPrefix(next.stdout, "T"); stopped != c.stops {
				t.Errorf("the command's state is %q", next.stdout)
			}
			p.signal(syscall.SIGCONT)
			p.end(75, "the lease could not be renewed in time")
			wantGone(t, pid)
		})
	}
}

// TestExecSignalsStopped: a signal ends a command that was stopped, such as one
// that tried to read from a terminal in whose background it is.
func TestExecSignalsStopped(t *testing.T) {
	t.Parallel()
	table := lockTableFor(t)
	for name, s := range map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begin(t, prepare(t, table.Env, "exec", "--key", name, "--", "sh", "-c", "echo $$; kill -TTIN $$; exec sleep 600"))
			pid := p.number()
			for state(pid) != "T" {
				time.Sleep(5 * time.Millisecond) // nothing reports that somebody else's child is stopped
			}
			p.signal(s)
			p.end(128 + int(s))
			hold(t, table, lock.Key{Name: name})
		})
	}
}

// TestExecSuspended: a command goes on after a stop that the lease survived.
func TestExecSuspended(t *testing.T) {
	t.Parallel()
	table := lockTableFor(t)
	p := begin(t, prepare(t, table.Env, "exec", "--lease", "10m", "--key", "k", "--", "sh", "-c", "echo $$; read line; echo done"))
	pid := p.number()
	p.signal(syscall.SIGTSTP)
	for state(pid) != "T" || state(p.cmd.Process.Pid) != "T" {
		time.Sleep(5 * time.Millisecond) // nothing reports that somebody else's child is stopped
	}
	p.signal(syscall.SIGCONT)
	p.say("go")
	p.wantLine("done")
	p.end(0)
}

// TestExecOtherUser: a command that runs as another user, as with sudo, cannot
// be signalled, and lambdalock says so instead of that it ends the command.
func TestExecOtherUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can make a command that runs as another user")
	}
	table := lockTableFor(t)
	folder := t.TempDir()
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	sudo := filepath.Join(folder, "sudo")
	for _, err := range []error{
		os.WriteFile(sudo, program, 0o600),
		os.Chmod(sudo, os.ModeSetuid|0o755),   //nolint:gosec // its caller is nobody
		os.Chmod(folder, 0o755),               //nolint:gosec // likewise
		os.Chmod(filepath.Dir(folder), 0o755), //nolint:gosec // likewise
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	p := begin(t, prepare(t, append(table.Env, userVariable+"=1"), "exec", "--lease", "6s", "--key", "k", "--", sudo))
	if line := p.line(); line != "root" {
		p.end(0)
		t.Skip("no setuid here:", line)
	}
	p.signal(syscall.SIGTERM)
	breakLock(t, table, "k")
	hold(t, table, lock.Key{Name: "k"})
	// The command ends by itself, after lambdalock would have killed it.
	r := p.end(75, `"k": the signal "terminated" was not passed on: the command goes on, because it runs as another user`,
		"or the store lost its data: the command goes on, because it runs as another user")
	wantLines(t, r.stderr, 2)
}

// userVariable makes the test binary lambdalock run by nobody or, with the
// setuid bit, a command that runs as root, as sudo does.
const userVariable = "LAMBDALOCK_TEST_USER"

func asOtherUser() {
	if os.Getuid() == 0 {
		if err := syscall.Setuid(65534); err != nil {
			panic(err)
		}
		main()
		return
	}
	if err := syscall.Setuid(0); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("root")
	time.Sleep(6 * time.Second) // the lease
}

// TestExecContention: 50 commands start at the same time and run one after the
// other. So many processes would leave a parallel test too little time for its
// requests.
func TestExecContention(t *testing.T) {
	table := lockTableFor(t)
	file := filepath.Join(t.TempDir(), "counter")
	if err := os.WriteFile(file, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	const commands = 50
	runs := atOnce(commands, func(int) run {
		return command(t, table.Env, "exec", "--wait", "10m", "--key", "k", "--", "sh", "-c",
			`n=$(cat "$1"); echo "$LAMBDALOCK_FENCE"; echo $((n + 1)) > "$1"`, "sh", file)
	})
	var fences []string
	for _, r := range runs {
		r.expect(t, 0)
		fences = append(fences, r.stdout)
	}
	if n, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(n)) != strconv.Itoa(commands) {
		t.Errorf("the counter is %s, want %d (%v)", n, commands, err)
	}
	slices.Sort(fences)
	if n := len(slices.Compact(fences)); n != commands {
		t.Errorf("%d different fences, want %d", n, commands)
	}
}

// TestExecEventAtOnce: one event at the same time in 20 commands.
func TestExecEventAtOnce(t *testing.T) {
	table := lockTableFor(t)
	ran, skipped := 0, 0
	for _, r := range atOnce(20, func(int) run {
		return command(t, table.Env, "exec", "--wait", "10m", "--key", "k", "--event", "e1", "--", "echo", "ran")
	}) {
		r.expect(t, 0)
		ran += strings.Count(r.stdout, "ran")
		skipped += strings.Count(r.stderr, "has succeeded before")
	}
	if ran != 1 || skipped != 19 {
		t.Errorf("ran %d times, skipped %d times, want 1 and 19", ran, skipped)
	}
}

// atOnce calls f n times at the same time.
func atOnce(n int, f func(int) run) []run {
	runs := make([]run, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { runs[i] = f(i) })
	}
	all.Wait()
	return runs
}
