package shell_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/commandtest"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/rowtest"
	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
)

func TestExecStatus(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	script := filepath.Join(t.TempDir(), "script")
	expect.Must(t, os.WriteFile(script, []byte("echo hello\n"), 0o600))
	noInterpreter := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(noInterpreter, []byte("#!/nowhere/sh\n"), 0o700); err != nil { //nolint:gosec // it is to be executed
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args   []string
		status int
		stderr string // within the only line; empty: there is none
	}{
		"success":          {[]string{"--key", "k", "--", "true"}, 0, ""},
		"no dashes":        {[]string{"--key", "k", "sh", "-c", "exit 3"}, 3, ""},
		"failure":          {[]string{"--key", "k", "--", "sh", "-c", "exit 7"}, 7, ""},
		"killed":           {[]string{"--key", "k", "--", "sh", "-c", "kill -9 $$"}, 137, ""},
		"terminated":       {[]string{"--key", "k", "--", "sh", "-c", "kill -TERM $$"}, 143, ""},
		"like a signal":    {[]string{"--key", "k", "--", "sh", "-c", "exit 143"}, 143, ""},
		"short flags":      {[]string{"-qnk", "k", "-E", "9", "--", "true"}, 0, ""},
		"seconds":          {[]string{"-w0.5", "-k", "k", "--", "true"}, 0, ""},
		"limit":            {[]string{"--key", "k", "--limit", "3", "--", "true"}, 0, ""},
		"no limit":         {[]string{"--key", "k", "--limit", "0", "--", "true"}, 64, "--limit 0: 1 to 100"},
		"high limit":       {[]string{"--key", "k", "--limit", "101", "--", "true"}, 64, "--limit 101: 1 to 100"},
		"limited event":    {[]string{"--key", "k", "--limit", "2", "--event", "e", "--", "true"}, 64, "--limit and --event exclude each other"},
		"not found":        {[]string{"--key", "k", "--", "no-such-command"}, 127, "no-such-command: there is no such command"},
		"shell syntax":     {[]string{"--key", "k", "--", "echo a && echo b"}, 127, "echo a && echo b: there is no such command; for shell syntax: sh -c"},
		"no such file":     {[]string{"--key", "k", "--", "/nowhere/x"}, 127, "/nowhere/x: there is no such command"},
		"not executable":   {[]string{"--key", "k", "--", script}, 126, "permission denied"},
		"folder":           {[]string{"--key", "k", "--", "/"}, 126, "is a directory"},
		"no interpreter":   {[]string{"--key", "k", "--", noInterpreter}, 126, "needs /nowhere/sh"},
		"no key":           {[]string{"--key", "", "--", "true"}, 64, "--key is empty"},
		"no event":         {[]string{"--key", "k", "--event", "", "--", "true"}, 64, "--event is empty"},
		"no command":       {[]string{"--key", "k", "--"}, 64, "name the command"},
		"empty command":    {[]string{"--key", "k", "--", ""}, 64, "name the command"},
		"short lease":      {[]string{"--key", "k", "--lease", "3s", "--", "true"}, 64, "--lease 3s: at least 4s"},
		"long lease":       {[]string{"--key", "k", "--lease", "9000h", "--", "true"}, 64, "--lease 9000h0m0s: at most 24h0m0s"},
		"longest lease":    {[]string{"--key", "k", "--lease", "24h", "--", "true"}, 0, ""},
		"long holder":      {[]string{"--key", "k", "--holder", strings.Repeat("h", 257), "--", "true"}, 64, "--holder: 257 bytes, at most 256"},
		"unsure status":    {[]string{"--key", "k", "--unsure-exit-code", "256", "--", "true"}, 64, "--unsure-exit-code 256"},
		"negative wait":    {[]string{"--key", "k", "--wait=-1s", "--", "true"}, 64, "--wait -1s"},
		"two waits":        {[]string{"-k", "k", "-nw", "5", "--", "true"}, 64, "--nonblock and --wait exclude each other"},
		"short memory":     {[]string{"--key", "k", "--remember", "1ms", "--", "true"}, 64, "--remember 1ms"},
		"long memory":      {[]string{"--key", "k", "--remember", "10000h", "--", "true"}, 64, "366"},
		"strange status":   {[]string{"--key", "k", "--conflict-exit-code", "256", "--", "true"}, 64, "--conflict-exit-code 256"},
		"wrong URL":        {[]string{"--store", "mysql://host", "--key", "k", "--", "true"}, 64, `no store for "mysql://"`},
		"no such table":    {[]string{"--store", "dynamodb://others", "--key", "k", "--", "true"}, 69, "does not exist"},
		"no server":        {[]string{"--store", "dynamodb://locks?endpoint=http://127.0.0.1:1", "--key", "k", "--", "true"}, 69, "connection refused"},
		"no Redis":         {[]string{"--store", "redis://127.0.0.1:1", "--key", "k", "--", "true"}, 69, "connection refused"},
		"second dashes":    {[]string{"--key", "k", "--", "sh", "-c", `test "$1" = --`, "sh", "--"}, 0, ""},
		"flags of command": {[]string{"--key", "k", "--", "sh", "-c", `test "$1" = --key`, "sh", "--key"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"exec", "--namespace", name}, c.args...)
			r := command(t, table.Env, args...)
			r.Expect(t, c.status, c.stderr)
			if c.stderr != "" {
				wantLines(t, r.Stderr, 1)
			} else if r.Stderr != "" {
				t.Errorf("it said %q", r.Stderr)
			}
			if signaled := name == "killed" || name == "terminated"; r.Signaled != signaled {
				t.Errorf("ended by a signal: %v, want %v", r.Signaled, signaled)
			}
		})
	}
}

// TestExecHoldsForNothing: a command that never began keeps no name held.
func TestExecHoldsForNothing(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	script := filepath.Join(t.TempDir(), "script")
	expect.Must(t, os.WriteFile(script, []byte("#!/nowhere/sh\n"), 0o700)) //nolint:gosec // it is to be executed
	for range 2 {
		command(t, table.Env, "exec", "--hold-at-least", "1h", "--key", "k", "--", script).Expect(t, 126)
	}
}

func TestExecUsage(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"no key":       {"exec", "--", "true"},
		"no command":   {"exec", "--key", "k"},
		"unknown flag": {"exec", "--key", "k", "--nothing", "--", "true"},
		"no duration":  {"exec", "--key", "k", "--wait", "3x", "--", "true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := command(t, nil, args...)
			r.Expect(t, 64, "Usage: lambdalock exec")
			if r.Stdout != "" { // a script may read it
				t.Errorf("on standard output:\n%s", r.Stdout)
			}
		})
	}
	command(t, nil, "exec", "--key", "k", "--", "true").Expect(t, 64, "--store URL", "LAMBDALOCK_STORE")
}

func TestExecHeld(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	lk := hold(t, table, lock.Key{Name: "main:hello", Event: "e1"})
	until := lk.Lease().Until.UTC().Format(time.RFC3339)
	for name, c := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"held":        {nil, 1, `lambdalock: "main:hello" is held by the night shift until ` + until + "\n"},
		"status":      {[]string{"--conflict-exit-code", "99"}, 99, `is held by the night shift until `},
		"waited":      {[]string{"--wait", "10ms"}, 1, `is held by the night shift until `},
		"other event": {[]string{"--event", "e2"}, 1, `is held by the night shift until `},
		"same event":  {[]string{"--event", "e1"}, 1, `is held by the night shift (for the same event) until `},
	} {
		t.Run(name, func(t *testing.T) {
			args := append(append([]string{"exec", "--key", "main:hello"}, c.args...), "--", "echo", "ran")
			r := command(t, append(table.Env, "TZ=Asia/Tokyo"), args...) // times are in UTC
			r.Expect(t, c.status, c.want)
			wantLines(t, r.Stderr, 1)
			if r.Stdout != "" {
				t.Errorf("it printed %q", r.Stdout)
			}
		})
	}
	command(t, table.Env, "exec", "--key", "main:world", "--", "echo", "ran").Expect(t, 0, "ran")
	command(t, table.Env, "exec", "--namespace", "other", "--key", "main:hello", "--", "echo", "ran").Expect(t, 0, "ran")
	expect.Must(t, lk.Release())
	command(t, table.Env, "exec", "--key", "main:hello", "--", "echo", "ran").Expect(t, 0, "ran")
}

func TestExecInputOutputAndEnvironment(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	c := prepare(t, append(table.Env, "LAMBDALOCK_EVENT=outer"), "exec", "--namespace", "ns", "--key", "k=1", "--", "sh", "-c",
		`cat; echo "$LAMBDALOCK_KEY/$LAMBDALOCK_NAMESPACE/$LAMBDALOCK_EVENT/$LAMBDALOCK_FENCE" >&2`)
	c.Stdin = strings.NewReader("a\x00b\xff")
	first := execute(t, c)
	first.Expect(t, 0)
	if first.Stdout != "a\x00b\xff" {
		t.Errorf("stdout %q", first.Stdout)
	}
	fence, ok := strings.CutPrefix(first.Stderr, "k=1/ns//")
	if !ok {
		t.Errorf("environment %q", first.Stderr)
	}
	second := command(t, table.Env, "exec", "--namespace", "ns", "--key", "k=1", "--event", "e1", "--", "sh", "-c", `echo "$LAMBDALOCK_EVENT/$LAMBDALOCK_FENCE"`)
	second.Expect(t, 0)
	if got := strings.TrimPrefix(second.Stdout, "e1/"); len(got) != len(fence) || got <= fence {
		t.Errorf("fence %q after %q", got, fence)
	}
}

func TestExecEvent(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	run := func(event, script string) commandtest.Result {
		return command(t, table.Env, "exec", "--key", "k", "--event", event, "--", "sh", "-c", script)
	}
	run("e1", "echo ran; exit 5").Expect(t, 5, "ran") // F36
	run("e1", "echo ran; kill $$").Expect(t, 143, "ran")
	run("e1", "echo ran").Expect(t, 0, "ran")
	for range 2 {
		again := run("e1", "echo ran")
		again.Expect(t, 0, `lambdalock: "k": the event "e1" has succeeded before, so the command does not run`)
		wantLines(t, again.Stderr, 1)
		if again.Stdout != "" {
			t.Errorf("it ran again: %q", again.Stdout)
		}
	}
	run("e2", "echo ran").Expect(t, 0, "ran")
	command(t, table.Env, "exec", "--key", "k", "--", "echo", "ran").Expect(t, 0, "ran")
}

// TestExecInterrupted: a command that a signal ended did not say whether its
// work was done.
func TestExecInterrupted(t *testing.T) { // F19
	t.Parallel()
	table := newTable(t)
	run := func(event, on, script string) commandtest.Result {
		return command(t, table.Env, "exec", "--key", "k", "--event", event, "--on-interrupted", on, "--", "sh", "-c", script)
	}
	run("e1", "fail", "echo ran; exit 5").Expect(t, 5, "ran") // a known end
	run("e1", "fail", "echo ran; kill -9 $$").Expect(t, 137, "ran")
	for range 2 {
		refused := run("e1", "fail", "echo ran")
		refused.Expect(t, 76, `"k": the run for the event "e1" that began at `, `was interrupted, so the command does not run`, "lambdalock complete")
		wantLines(t, refused.Stderr, 1)
		if refused.Stdout != "" {
			t.Errorf("it ran again: %q", refused.Stdout)
		}
	}
	run("e2", "fail", "echo ran").Expect(t, 0, "ran")
	skipped := run("e1", "skip", "echo ran")
	skipped.Expect(t, 0, `was interrupted, and counts as done`)
	wantLines(t, skipped.Stderr, 1)
	if skipped.Stdout != "" {
		t.Errorf("it ran again: %q", skipped.Stdout)
	}
	run("e1", "fail", "echo ran").Expect(t, 0, "has succeeded before")
	run("e3", "fail", "kill $$").Expect(t, 143)
	run("e3", "run", "echo ran").Expect(t, 0, "ran")
	command(t, table.Env, "exec", "--key", "k", "--on-interrupted", "skip", "--", "true").Expect(t, 64, "needs --event")
	run("e4", "ask", "true").Expect(t, 64, "--on-interrupted")
}

// TestExecManyArguments: all files of a large folder are given to a command.
func TestExecManyArguments(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	for _, dashes := range [][]string{{}, {"--"}} {
		for _, n := range []int{90, 95, 96, 97, 50_000} {
			args := append(append([]string{"exec", "--key", "k"}, dashes...), "sh", "-c", `echo "$# $1 ${2#-}"; shift $(($# - 1)); echo "$1"`, "sh")
			args = append(append(args, slices.Repeat([]string{"--key"}, n-1)...), "last")
			r := command(t, table.Env, args...)
			if want := fmt.Sprintf("%d --key -key\nlast\n", n); r.Status != 0 || r.Stdout != want {
				t.Errorf("%d arguments: status %d, %q, want %q", n, r.Status, r.Stdout, want)
			}
		}
	}
}

// TestExecKeepsBytes: names of files need not be UTF-8, and are told apart.
func TestExecKeepsBytes(t *testing.T) { // F27
	t.Parallel()
	table := newTable(t)
	for _, name := range []string{"caf\xe9.csv", "caf\xe8.csv", "caf\ufffd.csv"} {
		c := command(t, table.Env, "exec", "--key", "import", "--event", name, "--", "printf", "%s", name, "--", "-\xff")
		c.Expect(t, 0)
		if want := name + "---\xff"; c.Stdout != want {
			t.Errorf("%q printed %q, want %q", name, c.Stdout, want)
		}
	}
}

// TestExecLostBeforeRelease: the lease ran out, and the command ended before
// anybody knew.
func TestExecLostBeforeRelease(t *testing.T) { // F21
	t.Parallel()
	for name, c := range map[string]struct {
		args   []string
		script string
		status int
		want   string
	}{
		"mutex":        {nil, "", 0, "the lock was lost before the release: another command may have run at the same time; fence "},
		"unsure":       {[]string{"--event", "e1", "--unsure-exit-code", "74"}, "", 74, "the lock was lost before the release: the event counts as not run, and will run again"},
		"event":        {[]string{"--event", "e1"}, "", 0, "the lock was lost before the release: the event counts as not run, and will run again"},
		"event failed": {[]string{"--event", "e1"}, "exit 4", 4, "the lock was lost before the release: another command may have run at the same time; fence "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newTable(t)
			args := append(append([]string{"exec", "--key", "k"}, c.args...), "--", "sh", "-c", "echo ready; read line; "+c.script)
			p := begin(t, prepare(t, table.Env, args...))
			p.WantLine("ready")
			breakLock(t, table, "k")
			hold(t, table, lock.Key{Name: "k"})
			p.Say("go")
			p.End(c.status, "warning: \"k\": "+c.want)
		})
	}
}

// TestExecStoreGone: a lock that cannot be released is reported, and the
// command's status stays.
func TestExecStoreGone(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	p := begin(t, prepare(t, table.Env, "exec", "--key", "k", "--", "sh", "-c", "echo ready; read line; exit 6"))
	p.WantLine("ready")
	table.Close()
	p.Say("go")
	p.End(6, `warning: "k" was not released: `, "; it is free when the lease ends at ")
}

// TestExecUnconfirmed: a record without an answer may have been applied.
func TestExecUnconfirmed(t *testing.T) { // F6
	t.Parallel()
	for name, c := range map[string]struct {
		args   []string
		script string
		status int
		says   string
	}{
		"by default":   {nil, "", 0, `warning: "k": the event "e1" was perhaps not recorded, and may run again: `},
		"asked for":    {[]string{"--unsure-exit-code", "74"}, "", 74, `warning: "k": the event "e1" was perhaps not recorded, and may run again: `},
		"event failed": {[]string{"--unsure-exit-code", "74"}, "exit 4", 4, `warning: "k" was not released: `},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newTable(t)
			args := append(append([]string{"exec", "--lease", "4s", "--key", "k", "--event", "e1"}, c.args...), "--", "sh", "-c", "echo ready; read line; "+c.script)
			p := begin(t, prepare(t, table.Env, args...))
			p.WantLine("ready")
			table.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return fakedynamo.ApplyThenDrop })
			p.Say("go")
			p.End(c.status, c.says)
			table.OnRequest(nil)
			if m := rowtest.Read(t, table.Store, "/k").Memory; c.script == "" && len(m.Completed) != 1 {
				t.Errorf("the record was not applied: %+v", m)
			}
		})
	}
}
