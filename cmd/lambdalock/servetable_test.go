package main

import (
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/commandtest"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// TestServeTable follows what serve-table prints: functions of other commands
// find the table by it, and what they completed is there for the next.
func TestServeTable(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"loopback":      {"127.0.0.1:0"},
		"a name":        {"localhost:0"},
		"any interface": {"--any-interface", "0.0.0.0:0"}, // also over loopback
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			event := s3Event(t, "cat.png")
			p := commandtest.Begin(t, prepare(t, nil, append([]string{"serve-table", "--table", "orders-locks"}, args...)...))
			env := append([]string{"LAMBDALOCK_STORE=redis://127.0.0.1:1"}, exported(p)...) // of the shell before
			if !slices.Contains(env, "LOCK_TABLE_NAME=orders-locks") {
				t.Errorf("no name of the table in %q", env)
			}
			for _, want := range []string{`"resized"`, "skipped (completed)"} {
				command(t, env, "invoke", "--timeout", "1m", os.Args[0], event).Expect(t, 0, want)
			}
			command(t, env, "list", "--all").Expect(t, 0, "cat.png")
			p.Signal(os.Interrupt)
			p.End(0, "the empty table orders-locks on ", "until Ctrl-C")
		})
	}
}

// exported returns the variables that the command says to export.
func exported(p *commandtest.Process) []string {
	var env []string
	for !slices.Contains(env, "AWS_SESSION_TOKEN=") { // the last
		variable, _ := strings.CutPrefix(p.Line(), "export ")
		env = append(env, variable)
	}
	return env
}

func TestServeTableNames(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]string{"": "LOCK_TABLE_NAME=locks", "by-variable": "LOCK_TABLE_NAME=by-variable"} {
		p := commandtest.Begin(t, prepare(t, []string{"LOCK_TABLE_NAME=" + variable}, "serve-table", "127.0.0.1:0"))
		if env := exported(p); !slices.Contains(env, want) {
			t.Errorf("LOCK_TABLE_NAME=%s: %q", variable, env)
		}
		p.Signal(os.Interrupt)
		p.End(0)
	}
}

func TestServeTableRefuses(t *testing.T) {
	t.Parallel()
	taken := expect.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = taken.Close() })
	for name, c := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"every interface":       {[]string{":0"}, 64, "other machines can reach :0"},
		"every IPv4 interface":  {[]string{"0.0.0.0:0"}, 64, "add --any-interface"},
		"another's address":     {[]string{"--any-interface", "192.0.2.1:0"}, 69, "192.0.2.1"},
		"a port alone":          {[]string{"8000"}, 64, "missing port"},
		"no such port":          {[]string{"127.0.0.1:65536"}, 64, "invalid port"},
		"a port that is in use": {[]string{taken.Addr().String()}, 69, taken.Addr().String()},
		"not a name":            {[]string{"127.0.0.1:0", "--table", "a/b"}, 69, "create table a/b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := command(t, nil, append([]string{"serve-table"}, c.args...)...)
			r.Expect(t, c.status, c.says)
			if r.Stdout != "" {
				t.Errorf("it printed %q", r.Stdout)
			}
		})
	}
}
