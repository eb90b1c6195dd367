package shell_test

import (
	"testing"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/commandtest"
	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
)

// TestNamesake: the name of a lock as list prints it is not what exec takes,
// and exec says so if there is such a lock.
func TestNamesake(t *testing.T) {
	t.Parallel()
	const another = "is another lock than the one that list prints by this name"
	table := newTable(t)
	run := func(args ...string) commandtest.Result {
		return command(t, table.Env, append(append([]string{"exec"}, args...), "--", "true")...)
	}
	silent := func(args ...string) {
		t.Helper()
		if r := run(args...); r.Status != 0 || r.Stderr != "" {
			t.Errorf("%q: %s", args, r)
		}
	}
	silent("--key", "p8/a") // there is no other lock
	silent("--key", "plain")
	silent("--namespace", "p8", "--key", "b")
	silent("--key", "p8/a")
	run("--key", "p8/b").Expect(t, 0, `"p8/b" `+another, "give --namespace p8 --key b\n")
	run("--key", "/p8/a").Expect(t, 0, `"/p8/a" `+another, "give --key p8/a\n")
	run("--namespace", "p8", "--key", "p8/b").Expect(t, 0, "give --namespace p8 --key b\n")
	silent("--namespace", "p8", "--key", "b")
	// A look that is refused neither stops the command nor is reported.
	table.OnRequest(func(q fakedynamo.Request) fakedynamo.Fault {
		if q.Operation == "GetItem" {
			return fakedynamo.Deny
		}
		return fakedynamo.None
	})
	silent("--key", "p8/b")
}
