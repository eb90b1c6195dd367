//go:build unix

package shell_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/commandtest"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/rowtest"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
)

// TestExecKilled: the command ends with lambdalock, and the name is free once
// the lease has ended.
func TestExecKilled(t *testing.T) { // F19
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("only Linux and FreeBSD end a command with its parent:", err)
	}
	table := newTable(t)
	p := begin(t, prepare(t, table.Env, "exec", "--lease", "6s", "--key", "k", "--", "sh", "-c",
		"trap 'echo caught' USR1; echo $$; sh -c 'trap \"\" USR1; echo $$; while :; do sleep 0.01; done' & wait; wait"))
	pid, started := p.Number(), p.Number() // the command, and what it started
	p.Signal(syscall.SIGUSR1)
	p.WantLine("caught") // so lambdalock watches the command, and its guard is there
	p.Signal(syscall.SIGKILL)
	p.End(137)
	wantGone(t, pid)
	wantGone(t, started)
	command(t, table.Env, "exec", "--key", "k", "--", "echo", "ran").Expect(t, 1, "is held by sh on ")
	until := rowtest.Read(t, table.Store, "/k").Until
	next := command(t, table.Env, "exec", "--wait", "1m", "--key", "k", "--", "date", "+%s%N")
	next.Expect(t, 0, `lambdalock: "k" was not released by sh on `, ", whose lease has ended")
	if began, err := strconv.ParseInt(strings.TrimSpace(next.Stdout), 10, 64); err != nil || began <= until.UnixNano() {
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
			table := newTable(t)
			var down sync.Mutex
			env := through(t, table.URL, func() { down.Lock(); down.Unlock() }) //nolint:staticcheck // it waits while the store is down
			p := begin(t, prepare(t, append(table.Env, env...), "exec", "--lease", "8s", "--key", "k", "--", "sh", "-c", "echo $$; "+c.script+"while :; do sleep 0.01; done"))
			pid := p.Number()
			down.Lock()
			defer down.Unlock()
			next := command(t, table.Env, "exec", "--wait", "1m", "--key", "k", "--", "sh", "-c",
				fmt.Sprintf("ps -o stat= -p %d | grep -v Z; exit 0", pid))
			next.Expect(t, 0)
			if next.Stdout != "" {
				t.Errorf("the first command overlaps the second one: %q", next.Stdout)
			}
			r := p.End(75, `"k": the lease could not be renewed in time: the command is being ended: `)
			if n := strings.Count(r.Stderr, "lambdalock: \""); n != 1 { // the shell may say something too
				t.Errorf("%d lines of our own, want one", n)
			}
			if !strings.HasSuffix(r.Stdout, c.last) {
				t.Errorf("its last words are %q, want %q", r.Stdout, c.last)
			}
		})
	}
}

// TestExecLostIsInterrupted: of a command that was ended because its lease was
// lost, nobody knows how far it had come, also if the store hears of its end.
func TestExecLostIsInterrupted(t *testing.T) { // F19, F20
	t.Parallel()
	table := newTable(t)
	var down sync.Mutex
	env := through(t, table.URL, func() { down.Lock(); down.Unlock() }) //nolint:staticcheck // it waits while the store is down
	args := []string{"exec", "--lease", "6s", "--key", "k", "--event", "e", "--on-interrupted", "fail", "--", "sh", "-c"}
	p := begin(t, prepare(t, append(table.Env, env...), append(args, "trap 'echo ending; exit 1' TERM; echo $$; while :; do sleep 0.01; done")...))
	p.Number()
	down.Lock()
	p.WantLine("ending")
	down.Unlock()
	p.End(75)
	command(t, table.Env, append([]string{"exec", "--wait", "1m"}, append(args[1:], "echo ran")...)...).Expect(t, 76, "was interrupted")
}

// TestExecLostUnread: a command whose lease is lost is ended, also if nobody
// reads what lambdalock says of that.
func TestExecLostUnread(t *testing.T) { // F20
	t.Parallel()
	table := newTable(t)
	_, full := fullPipe(t)
	c := prepare(t, table.Env, "exec", "--lease", "6s", "--key", "k", "--", "sh", "-c", "trap '' TERM; echo $$; exec 2>&-; while :; do sleep 0.01; done")
	out := expect.Value(c.StdoutPipe())(t)
	c.Stderr = full
	commandtest.Detach(c)
	expect.Must(t, c.Start())
	var pid int
	expect.Value(fmt.Fscan(out, &pid))(t)
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	breakLock(t, table, "k")
	command(t, table.Env, "exec", "--lease", "10m", "--wait", "1m", "--key", "k", "--", "true").Expect(t, 0)
	wantGone(t, pid)
}

// fullPipe returns a pipe that takes no more.
func fullPipe(t *testing.T) (reader, writer *os.File) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = reader.Close(), writer.Close() })
	expect.Must(t, writer.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
	for err == nil {
		_, err = writer.Write(make([]byte, 1<<12))
	}
	return reader, writer
}

// TestExecBroken: somebody broke the lock, and the next renewal shows it. A
// lease of 4 s would be lost if that renewal came 0.8 s late.
func TestExecBroken(t *testing.T) { // F20
	t.Parallel()
	table := newTable(t)
	p := begin(t, prepare(t, table.Env, "exec", "--lease", "6s", "--key", "k", "--", "sh", "-c", "echo ready; exec sleep 600"))
	p.WantLine("ready")
	breakLock(t, table, "k")
	lk := hold(t, table, lock.Key{Name: "k"})
	p.End(75, "the lock was lost, because somebody else released or took it")
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
	}{"TSTP": {syscall.SIGTSTP, true}, "TTOU": {syscall.SIGTTOU, true}, "STOP": {syscall.SIGSTOP, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newTable(t)
			// The command starts no processes: one that waits for another to start is in
			// state D, stopped or not. A lease of 4 s would be lost if this signal took
			// more than 1.6 s.
			p := begin(t, prepare(t, table.Env, "exec", "--lease", "9s", "--key", "k", "--", "sh", "-c", "echo $$; exec sleep 600"))
			pid := p.Number()
			p.Signal(c.signal)
			// Once the name was taken over, the lease has ended for everybody.
			next := command(t, table.Env, "exec", "--lease", "10m", "--wait", "1m", "--key", "k", "--", "ps", "-o", "stat=", "-p", strconv.Itoa(pid))
			next.Expect(t, 0)
			if stopped := strings.HasPrefix(next.Stdout, "T"); stopped != c.stops {
				t.Errorf("the command's state is %q", next.Stdout)
			}
			p.Signal(syscall.SIGCONT)
			p.End(75, "the lease could not be renewed in time")
			wantGone(t, pid)
		})
	}
}

// wantGone waits until a process has ended. Those that lambdalock started are
// zombies until their new parent notices.
func wantGone(t *testing.T, pid int) {
	t.Helper()
	for late := time.Now().Add(patience); state(pid) != "" && state(pid) != "Z"; {
		if time.Now().After(late) {
			t.Fatalf("process %d goes on after %v", pid, patience)
		}
		time.Sleep(5 * time.Millisecond) // nothing reports the end of somebody else's child
	}
}
