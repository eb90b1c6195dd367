package main

import (
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
)

// TestNamesake: the name of a lock as list prints it is not what exec takes,
// and exec says so if there is such a lock.
func TestNamesake(t *testing.T) {
	t.Parallel()
	const another = "is another lock than the one that list prints by this name"
	table := newLockTable(t, "locks")
	run := func(args ...string) run {
		return command(t, table.env, append(append([]string{"exec"}, args...), "--", "true")...)
	}
	silent := func(args ...string) {
		t.Helper()
		if r := run(args...); r.status != 0 || r.stderr != "" {
			t.Errorf("%q: %s", args, r)
		}
	}
	silent("--key", "p8/a") // there is no other lock
	silent("--key", "plain")
	silent("--namespace", "p8", "--key", "b")
	silent("--key", "p8/a")
	run("--key", "p8/b").expect(t, 0, `"p8/b" `+another, "give --namespace p8 --key b\n")
	run("--key", "/p8/a").expect(t, 0, `"/p8/a" `+another, "give --key p8/a\n")
	run("--namespace", "p8", "--key", "p8/b").expect(t, 0, "give --namespace p8 --key b\n")
	silent("--namespace", "p8", "--key", "b")
	// The others find it by either name.
	for _, args := range [][]string{{"p8/b"}, {"--namespace", "p8", "b"}} {
		r := command(t, table.env, append([]string{"show"}, args...)...)
		if !strings.HasPrefix(r.stdout, "p8/b\n") {
			t.Errorf("%q: %s", args, r)
		}
	}
	// A look that is refused neither stops the command nor is reported.
	table.OnRequest(func(q fakedynamo.Request) fakedynamo.Fault {
		if q.Operation == "GetItem" {
			return fakedynamo.Deny
		}
		return fakedynamo.None
	})
	silent("--key", "p8/b")
}
