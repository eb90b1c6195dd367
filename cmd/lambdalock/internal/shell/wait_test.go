package shell_test

import (
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/commandtest"
	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/lock"
)

// TestExecDoesNotRepeatMistakes: --wait is not for what a person has to mend.
func TestExecDoesNotRepeatMistakes(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	var requests atomic.Int32
	table.OnRequest(func(fakedynamo.Request) fakedynamo.Fault {
		requests.Add(1)
		return fakedynamo.Deny
	})
	r := command(t, table.Env, "exec", "--wait", "3s", "--key", "k", "--", "echo", "ran")
	r.Expect(t, 69, "dynamodb:UpdateItem was denied")
	wantLines(t, r.Stderr, 1)
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

// TestExecNamesItsHolder: others see what --holder says.
func TestExecNamesItsHolder(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	for name, env := range map[string][]string{"flag": nil, "variable": {"LAMBDALOCK_HOLDER=job 17 of main"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"exec", "--key", name, "--", "sh", "-c", "echo ready; read line"}
			if env == nil {
				args = slices.Insert(args, 1, "--holder", "job 17 of main")
			}
			p := begin(t, prepare(t, append(table.Env, env...), args...))
			p.WantLine("ready")
			command(t, table.Env, "exec", "--key", name, "--", "true").Expect(t, 1, "is held by job 17 of main until ")
			p.Say("go")
			p.End(0)
		})
	}
}

// TestExecWaitsForever: a wait has no end if it is asked for.
func TestExecWaitsForever(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	var requests atomic.Int32
	table.OnRequest(func(fakedynamo.Request) fakedynamo.Fault {
		if requests.Add(1) > 3 {
			return fakedynamo.None
		}
		return fakedynamo.Throttle
	})
	command(t, table.Env, "exec", "--wait", "forever", "--key", "k", "--", "echo", "ran").
		Expect(t, 0, "trying again until it answers", "ran")
	command(t, table.Env, "exec", "--wait", "ever", "--key", "k", "--", "true").
		Expect(t, 64, `"ever" is neither a duration, such as 90s or 5m, nor a number of seconds, nor forever`)
}

// TestExecWaitsForTheStore: --wait is also for a store that does not answer.
func TestExecWaitsForTheStore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		comesBack bool
		wait      string
		status    int
	}{"comes back": {true, "10m", 0}, "stays away": {false, "3s", 69}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newTable(t)
			var requests atomic.Int32
			table.OnRequest(func(fakedynamo.Request) fakedynamo.Fault {
				// Package lock gives up after the second refusal.
				if requests.Add(1) > 3 && c.comesBack {
					return fakedynamo.None
				}
				return fakedynamo.Throttle
			})
			r := command(t, table.Env, "exec", "--wait", c.wait, "--key", "k", "--", "echo", "ran")
			r.Expect(t, c.status, "; trying again until ")
			if ran := r.Stdout == "ran\n"; ran != c.comesBack {
				t.Errorf("it printed %q", r.Stdout)
			}
			if n := strings.Count(r.Stderr, "trying again"); n != 1 {
				t.Errorf("said %d times that it tries again", n)
			}
		})
	}
}

// TestExecLimit: as many commands run as --limit allows.
func TestExecLimit(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	one := begin(t, prepare(t, table.Env, "exec", "--limit", "2", "--holder", "one", "-k", "k", "--", "sh", "-c", "echo ready; read line"))
	one.WantLine("ready")
	run := func(args ...string) commandtest.Result {
		return command(t, table.Env, append([]string{"exec", "-k", "k", "--limit", "2"}, args...)...)
	}
	run("--holder", "two", "--", "sh", "-c", `"$0" exec -k k --limit 2 -- true`, os.Args[0]).Expect(t, 1, `"k" is held by 2 commands, one of them `, " until ")
	run("-n", "--", "echo", "ran").Expect(t, 0, "ran")
	one.Say("go")
	one.End(0)
}

// TestExecQuiet: what the status says is not said twice, and mistakes are.
func TestExecQuiet(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	hold(t, table, lock.Key{Name: "held"})
	for _, c := range []struct {
		args   []string
		status int
		stderr string
	}{
		{[]string{"-k", "held", "--", "echo", "ran"}, 1, ""},
		{[]string{"-k", "k", "--event", "e", "--", "true"}, 0, ""},
		{[]string{"-k", "k", "--event", "e", "--", "echo", "ran"}, 0, ""},
		{[]string{"-k", "interrupted", "--event", "e", "--on-interrupted", "skip", "--", "sh", "-c", "kill -9 $$"}, 137, ""},
		{[]string{"-k", "interrupted", "--event", "e", "--on-interrupted", "skip", "--", "echo", "ran"}, 0, ""},
		{[]string{"-k", "k", "--", "no-such-command"}, 127, "lambdalock: no-such-command: there is no such command\n"},
	} {
		r := command(t, table.Env, append([]string{"exec", "-q"}, c.args...)...)
		r.Expect(t, c.status)
		if r.Stdout != "" || r.Stderr != c.stderr {
			t.Errorf("%v: %q, %q, want %q", c.args, r.Stdout, r.Stderr, c.stderr)
		}
	}
}
