//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/commandtest"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// scripts runs the scripts of examples/shell over one Redis server.
type scripts struct {
	t      *testing.T
	server *miniredis.Miniredis
	env    []string
	folder string
}

func newScripts(t *testing.T) *scripts {
	t.Helper()
	server := miniredis.RunT(t)
	bin := t.TempDir()
	self := expect.Value(filepath.Abs(os.Args[0]))(t)
	expect.Must(t, os.Symlink(self, filepath.Join(bin, "lambdalock")))
	folder := expect.Value(filepath.Abs("../../examples/shell"))(t)
	return &scripts{t, server, []string{patientVariable + "=1", "LAMBDALOCK_STORE=redis://" + server.Addr(), "PATH=" + bin + ":" + os.Getenv("PATH"), "TZ=Asia/Tokyo"}, folder}
}

// prepare makes a run of a script, or of a program in PATH, that is not begun.
func (s *scripts) prepare(env []string, name string, args ...string) *exec.Cmd {
	s.t.Helper()
	c := prepare(s.t, append(s.env, env...), args...)
	c.Args[0] = name
	c.Path = filepath.Join(s.folder, name)
	if _, err := os.Stat(c.Path); err != nil {
		c.Path, err = exec.LookPath(name)
		if name == "lambdalock" {
			c.Path, err = os.Args[0], nil
		}
		if err != nil {
			s.t.Skip("this test needs", name)
		}
	}
	commandtest.Detach(c)
	return c
}

func (s *scripts) run(env []string, name string, args ...string) commandtest.Result {
	s.t.Helper()
	r := execute(s.t, s.prepare(env, name, args...))
	r.Stdout, r.Stderr = stable(r.Stdout), stable(r.Stderr)
	return r
}

// stable replaces what differs between two runs.
func stable(text string) string {
	for _, c := range []struct{ from, to string }{
		{`on \S+ pid \d+`, "on HOST pid PID"},
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, "TIME"},
		{`\(in \d+s\)`, "(in N)"},
		{`fence \d+`, "fence N"},
		{` {2,}`, "  "},
	} {
		text = regexp.MustCompile(c.from).ReplaceAllString(text, c.to)
	}
	return text
}

func wantExactly(t *testing.T, r commandtest.Result, status int, stdout, stderr string) {
	t.Helper()
	if r.Status != status || r.Stdout != stdout || r.Stderr != stderr {
		t.Errorf("status %d, want %d\nstdout:\n%s\nwant:\n%s\nstderr:\n%s\nwant:\n%s", r.Status, status, r.Stdout, stdout, r.Stderr, stderr)
	}
}

// TestExampleTasks: two tasks over Redis at the same time, and a second run of
// one of them.
func TestExampleTasks(t *testing.T) {
	t.Parallel()
	s := newScripts(t)
	hello := begin(t, s.prepare([]string{"WORK=cat"}, "task", "main:hello")) // until its input ends
	hello.WantLine("Hello begins")
	wantExactly(t, s.run([]string{"WORK=true"}, "task", "main:hello"), 1, "", "lambdalock: \"main:hello\" is held by sh on HOST pid PID until TIME\n")
	wantExactly(t, s.run([]string{"WORK=true"}, "task", "main:world"), 0, "World begins\nWorld ends\n", "")
	_ = hello.Stdin.Close()
	hello.WantLine("Hello ends")
	hello.End(0)
	wantExactly(t, s.run([]string{"WORK=true"}, "task", "main:hello"), 0, "Hello begins\nHello ends\n", "")
	s.run(nil, "task", "main:other").Expect(t, 2, "usage: ")
}

// TestExampleMakefile: rules that lock.
func TestExampleMakefile(t *testing.T) {
	t.Parallel()
	s := newScripts(t)
	r := s.run(nil, "make", "-s", "-j2", "-f", filepath.Join(s.folder, "Makefile"), "hello", "world", "COMMIT=1f2e")
	r.Expect(t, 0, "Hello\n", "World\n")
	wantExactly(t, s.run(nil, "make", "-s", "-f", filepath.Join(s.folder, "Makefile"), "world", "COMMIT=1f2e"),
		0, "", "lambdalock: \"main:world\": the event \"1f2e\" has succeeded before, so the command does not run\n")
}

// TestExampleRakefile: tasks that start themselves again under their locks,
// what is left to do after them, and signals.
func TestExampleRakefile(t *testing.T) {
	t.Parallel()
	s := newScripts(t)
	rakefile := filepath.Join(t.TempDir(), "Rakefile")
	example := expect.Value(os.ReadFile(filepath.Join(s.folder, "Rakefile")))(t)
	expect.Must(t, os.WriteFile(rakefile, append(example, `
task(both: ['main:hello', 'main:world']) { puts 'Both' }
task(:greet, [:who, :where]) { |t, args| guarded(t, args) { puts "Hello #{args[:who]} in #{args[:where]}" } }
task(:outer) { |t, args| guarded(t, args) { Rake::Task['main:hello'].invoke } }
task(:fail) { |t, args| guarded(t, args) { exit 7 } }
task(:cat) { |t, args| guarded(t, args) { exec 'echo begun; exec cat' } }
`...), 0o600))
	for _, c := range []struct {
		tasks  []string
		status int
		stdout string
	}{
		{[]string{"main:hello"}, 0, "Hello\n"},
		{[]string{"main:hello", "main:world"}, 0, "Hello\nWorld\n"},
		{[]string{"both"}, 0, "Hello\nWorld\nBoth\n"},
		{[]string{"greet[you,Rome]"}, 0, "Hello you in Rome\n"},
		{[]string{"outer", "main:world"}, 0, "Hello\nWorld\n"},
		{[]string{"fail", "main:hello"}, 7, ""},
	} {
		wantExactly(t, s.run(nil, "rake", append([]string{"-s", "-f", rakefile}, c.tasks...)...), c.status, c.stdout, "")
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		p := begin(t, s.prepare(nil, "rake", "-s", "-f", rakefile, "cat", "main:hello"))
		p.WantLine("begun")
		p.Signal(sig)
		// Not for the end of its output, which a task that goes on has, too.
		state := expect.Value(p.Cmd.Process.Wait())(t)
		if by, _ := state.Sys().(syscall.WaitStatus); by.Signal() != sig {
			t.Errorf("%v: rake ended by %v", sig, state)
		}
		s.run(nil, "lambdalock", "list").Expect(t, 0, "0 held")
		_ = p.Stdin.Close()
	}
}

// TestExampleMutex: a named mutex with its holder, a timeout, and what becomes
// of rows that have expired.
func TestExampleMutex(t *testing.T) { // F19
	t.Parallel()
	s := newScripts(t)
	first := begin(t, s.prepare([]string{"LEASE=10m"}, "mutex", "printer", "sh", "-c", "echo printing; exec cat"))
	first.WantLine("printing")
	const held = "lambdalock: \"mutex/printer\" is held by sh on HOST pid PID until TIME\n"
	wantExactly(t, s.run(nil, "mutex", "printer", "echo", "printed"), 1, "", held)
	wantExactly(t, s.run([]string{"TIMEOUT=10ms"}, "mutex", "printer", "echo", "printed"), 1, "", held)
	s.run(nil, "lambdalock", "list").Expect(t, 0, "held", "/mutex/printer", "sh on HOST pid PID")
	wantExactly(t, s.run(nil, "mutex", "scanner", "echo", "scanned"), 0, "scanned\n", "")

	first.Signal(syscall.SIGKILL)
	first.End(137)
	s.server.SetTime(time.Now().Add(time.Hour)) // that of the leases
	wantExactly(t, s.run([]string{"TIMEOUT=1m"}, "mutex", "printer", "echo", "printed"),
		0, "printed\n", "lambdalock: \"mutex/printer\" was not released by sh on HOST pid PID, whose lease has ended\n")
	s.run(nil, "lambdalock", "list").Expect(t, 0, "0 held, 0 expired, 2 free") // --all names them
	s.server.FastForward(25 * time.Hour)                                       // a day after the last use
	if left := s.server.Keys(); len(left) != 0 {
		t.Errorf("the server still has %q", left)
	}
}

// TestExampleBackup: a wait, and a lease that ran out before the release.
func TestExampleBackup(t *testing.T) { // F21
	t.Parallel()
	s := newScripts(t)
	first := begin(t, s.prepare(nil, "backup", "sh", "-c", "echo copying; cat"))
	first.WantLine("copying")
	second := begin(t, s.prepare(nil, "backup", "sh", "-c", "echo copying, too; cat")) // waits
	s.run(nil, "lambdalock", "release", "--yes", "backup").Expect(t, 0, "Released ")
	second.WantLine("copying, too")
	_ = first.Stdin.Close()
	r := first.End(0, "backup: finished")
	if want := "lambdalock: warning: \"backup\": the lock was lost before the release: another command may have run at the same time; fence N\n"; stable(r.Stderr) != want {
		t.Errorf("it said %q, want %q", stable(r.Stderr), want)
	}
	_ = second.Stdin.Close()
	if r := second.End(0, "backup: finished"); r.Stderr != "" {
		t.Errorf("the second one said %q", r.Stderr)
	}
	failed := s.run(nil, "backup", "sh", "-c", "exit 7")
	wantExactly(t, failed, 7, "backup: failed with status 7\n", "")
	if strings.Contains(failed.Stderr, "warning") {
		t.Error("a command that fails is not worth a warning")
	}
}

// TestExampleUnit: the command of the systemd unit, on hosts of which one fails
// and one dies.
func TestExampleUnit(t *testing.T) {
	t.Parallel()
	s := newScripts(t)
	unit := expect.Value(os.ReadFile(filepath.Join(s.folder, "nightly.service")))(t)
	line := regexp.MustCompile(`(?m)^ExecStart=/bin/sh -c '(.*)'$`).FindSubmatch(unit)
	if line == nil {
		t.Fatalf("no command:\n%s", unit)
	}
	start := func(job string, replaced ...string) *exec.Cmd {
		script := strings.NewReplacer(append(replaced, "%%", "%", "/srv/app/nightly", job)...).Replace(string(line[1]))
		return s.prepare(nil, "sh", "-c", script)
	}
	failing := begin(t, start("sh -c 'echo begun; read line; exit 3'"))
	failing.WantLine("begun")
	failing.Say("go")
	failing.End(3)
	dying := begin(t, start("sh -c 'echo begun; exec cat'"))
	dying.WantLine("begun")
	wantExactly(t, execute(t, start("echo ran", "--wait 12h", "--wait 10ms")), 1, "", "")
	if strings.Contains(string(unit), "SuccessExitStatus") {
		t.Error("a host that did not see the job succeed must try again: the one at work may die")
	}
	dying.Signal(syscall.SIGKILL)
	dying.End(137)
	waiting := begin(t, start("echo ran"))
	s.server.SetTime(time.Now().Add(time.Hour)) // that of the leases
	waiting.WantLine("ran")
	waiting.End(0)
	wantExactly(t, execute(t, start("echo ran")), 0, "", "")
}
