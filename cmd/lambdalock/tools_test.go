package main

import (
	"encoding/json"
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

func TestShow(t *testing.T) {
	t.Parallel()
	s := commandtest.NewTable(t, "locks")
	rowtest.Acquire(t, s.Store, "f request 1", 23*time.Hour+30*time.Minute, lock.Key{Name: "cat\x1b[2J", Event: "e\u202e1"})
	rowtest.Acquire(t, s.Store, "f request 2", -time.Second, lock.Key{Name: "dead"})
	rowtest.Complete(t, s.Store, lock.Key{Name: "bird", Event: "e3", Order: "05"}, []byte("result"))
	for range 2 {
		rowtest.AcquireOneOfTwo(t, s.Store, "f request 4", time.Hour, "nightly")
	}
	// Another lock, which list prints as /orders/bird.
	rowtest.Complete(t, s.Store, lock.Key{Name: "orders/bird", Event: "e4"}, nil, func(o *lock.Options) { o.Namespace = "" })
	digest := lock.Key{Name: "bird"}.Digest()
	for name, c := range map[string]struct {
		args   []string
		status int
		says   []string
	}{
		"held":                 {[]string{"orders/cat\x1b[2J"}, 0, []string{`"orders/cat\x1b[2J"`, "state          held", "holder         f request 1", `event          "e\u202e1"`, "(in 23h"}},
		"both parts":           {[]string{"orders/bird"}, 0, []string{"orders/bird\n  digest         " + digest}},
		"by namespace":         {[]string{"--namespace", "orders", "bird"}, 0, []string{"orders/bird", "state          free", "e3  at 2", "ago), remembered until", "highest order  05", "6 bytes kept for replay, of e3"}},
		"expired":              {[]string{"orders/dead"}, 0, []string{"state          expired", "holder         f request 2", "ago)"}},
		"slots":                {[]string{"orders/nightly"}, 0, []string{"state          held", "slot 2         held by f request 4"}},
		"digest":               {[]string{"--digest", digest}, 0, []string{"orders/bird\n  digest         " + digest}},
		"digest, namespace":    {[]string{"--digest", digest, "--namespace", "orders"}, 0, []string{"orders/bird\n"}},
		"JSON":                 {[]string{"--json", "orders/bird"}, 0, []string{`"name": "orders/bird",`, `"highestOrder": "05"`}},
		"not there":            {[]string{"orders/dog"}, 1, []string{"there is no row orders/dog and no row /orders/dog"}},
		"another namespace":    {[]string{"--namespace", "x", "bird"}, 1, []string{"there is no row x/bird"}},
		"digest not there":     {[]string{"--digest", "0123456789ab"}, 1, []string{"no row has the digest 0123456789ab"}},
		"digest elsewhere":     {[]string{"--digest", digest, "--namespace", "x\x1b"}, 1, []string{`no row of the namespace "x\x1b" has the digest`}},
		"digest as a key":      {[]string{"--namespace", "orders", digest}, 1, []string{"there is no row orders/" + digest, "or store? A digest, as log lines have it, takes --digest"}},
		"neither":              {nil, 64, []string{"name the lock, or give the --digest"}},
		"both":                 {[]string{"a", "--digest", digest}, 64, []string{"name the lock, or give the --digest"}},
		"not a digest":         {[]string{"--digest", "CACCA44F4955"}, 64, []string{"12 characters"}},
		"empty key, namespace": {[]string{"--namespace", "orders", ""}, 64, []string{"name the lock"}},
		"another table":        {[]string{"--store", "dynamodb://other", "a"}, 69, []string{"DynamoDB table other", "create-table"}},
		"not a store":          {[]string{"--store", "mysql://other", "a"}, 64, []string{"no store for"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := command(t, s.Env, append([]string{"show"}, c.args...)...)
			r.Expect(t, c.status, c.says...)
			if strings.ContainsAny(r.String(), "\x1b\u202e\u009b") {
				t.Errorf("prints what a terminal obeys: %q", r)
			}
		})
	}
	command(t, append(s.Env, "LOCK_TABLE_NAME="), "show", "a").Expect(t, 64, "no store: give --store URL")
}

// TestJSONFields shows the fields that scripts rely on.
func TestJSONFields(t *testing.T) {
	t.Parallel()
	s := commandtest.NewTable(t, "locks")
	rowtest.Complete(t, s.Store, lock.Key{Name: "a", Event: "e1", Payload: "p"}, []byte("result"))
	rowtest.Acquire(t, s.Store, "f", time.Hour, lock.Key{Name: "a", Event: "e2", Payload: "p"})
	rowtest.Acquire(t, s.Store, "f", time.Hour, lock.Key{Name: "b"})
	fields := func(text string) []string {
		var m map[string]any
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		var names []string
		for name := range m {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	want := []string{"completed", "deleteAfter", "digest", "event", "fence", "holder", "key", "name", "namespace", "payload", "result", "since", "slot", "state", "until"}
	if got := fields(command(t, s.Env, "show", "--json", "orders/a").Stdout); !slices.Equal(got, want) {
		t.Errorf("show: %v, want %v", got, want)
	}
	lines := strings.Split(strings.TrimSpace(command(t, s.Env, "list", "--json").Stdout), "\n")
	if len(lines) != 2 || !slices.Equal(fields(lines[0]), want) {
		t.Errorf("list: %v", lines)
	}
	file := filepath.Join(t.TempDir(), "event.json")
	expect.Must(t, os.WriteFile(file, []byte(`{"Records":[{"eventSource":"aws:sqs","messageId":"m"}]}`), 0o600))
	if got := fields(command(t, s.Env, "explain", "--json", file).Stdout); !slices.Equal(got, []string{"kind", "records"}) {
		t.Errorf("explain: %v", got)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	s := commandtest.NewTable(t, "locks")
	rowtest.Acquire(t, s.Store, "f request 1\x1b", time.Hour, lock.Key{Name: "held"})
	rowtest.Acquire(t, s.Store, "f request 2", -time.Second, lock.Key{Name: "dead"})
	rowtest.Complete(t, s.Store, lock.Key{Name: "free", Event: "e"}, nil)
	rowtest.Acquire(t, s.Store, "g request 3", time.Hour, lock.Key{Name: "other"}, func(o *lock.Options) { o.Namespace = "payments" })
	for name, c := range map[string]struct {
		args  []string
		names []string
	}{
		"default":             {nil, []string{"orders/dead", "orders/held", "payments/other"}},
		"held":                {[]string{"--held"}, []string{"orders/held", "payments/other"}},
		"expired":             {[]string{"--expired"}, []string{"orders/dead"}},
		"all":                 {[]string{"--all"}, []string{"orders/dead", "orders/free", "orders/held", "payments/other"}},
		"namespace":           {[]string{"--namespace", "payments", "--all"}, []string{"payments/other"}},
		"another namespace":   {[]string{"--namespace", "x"}, nil},
		"part of a namespace": {[]string{"--namespace", "pay"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := command(t, s.Env, append([]string{"list"}, c.args...)...)
			r.Expect(t, 0)
			var got []string
			for _, line := range strings.Split(strings.TrimSpace(r.Stdout), "\n") {
				for _, name := range []string{"orders/dead", "orders/free", "orders/held", "payments/other"} {
					if strings.Contains(line, "  "+name) {
						got = append(got, name)
					}
				}
			}
			if !slices.Equal(got, c.names) || strings.Contains(r.Stdout, "\x1b") {
				t.Errorf("got %v, want %v in\n%s", got, c.names, r.Stdout)
			}
		})
	}
	command(t, s.Env, "list").Expect(t, 0, "2 held, 1 expired, 1 free; the oldest is held since ")
	// A namespace that is left in the environment must not look like an idle store.
	command(t, append(slices.Clone(s.Env), "LOCK_NAMESPACE=else"), "list").Expect(t, 0, "0 held, 0 expired, 0 free of the namespace else\n")
	command(t, s.Env, "list", "--held", "--all").Expect(t, 64, "can't be used together")
	s.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return fakedynamo.Deny })
	command(t, s.Env, "list").Expect(t, 69, "dynamodb:Scan was denied", "LeadingKeys")
	command(t, s.Env, "show", "orders/held").Expect(t, 69, "dynamodb:GetItem was denied")
	command(t, s.Env, "watch").Expect(t, 69, "dynamodb:Scan was denied")
	command(t, s.Env, "watch", "a").Expect(t, 69, "dynamodb:GetItem was denied")
	command(t, s.Env, "release", "--yes", "orders/held").Expect(t, 69, "dynamodb:GetItem was denied")
	command(t, s.Env, "forget", "--yes", "orders/free", "e").Expect(t, 69, "dynamodb:GetItem was denied")
	s.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
		if r.Operation == "UpdateItem" {
			return fakedynamo.Deny
		}
		return fakedynamo.None
	})
	command(t, s.Env, "release", "--yes", "orders/held").Expect(t, 69, "dynamodb:UpdateItem was denied")
	command(t, s.Env, "forget", "--yes", "orders/free", "e").Expect(t, 69, "dynamodb:UpdateItem was denied")
}

func TestThrottledReadEnds(t *testing.T) {
	t.Parallel()
	s := commandtest.NewTable(t, "locks")
	s.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return fakedynamo.Throttle })
	command(t, s.Env, "show", "orders/held").Expect(t, 69, "ProvisionedThroughputExceededException")
}

func TestReleaseRefuses(t *testing.T) {
	t.Parallel()
	s := commandtest.NewTable(t, "locks")
	rowtest.Complete(t, s.Store, lock.Key{Name: "free", Event: "e"}, nil)
	rowtest.Acquire(t, s.Store, "f request 1", time.Hour, lock.Key{Name: "held"})
	for range 2 {
		rowtest.AcquireOneOfTwo(t, s.Store, "f request 2", time.Hour, "limited")
	}
	command(t, s.Env, "release", "orders/dog", "--yes").Expect(t, 1, "there is no row orders/dog")
	command(t, s.Env, "release", "orders/free", "--yes").Expect(t, 1, "nobody holds orders/free")
	command(t, s.Env, "release", "orders/held").Expect(t, 64, "not a terminal", "--yes")
	command(t, s.Env, "release").Expect(t, 64, "expected \"<key>\"")
	if row := rowtest.Read(t, s.Store, "orders/held"); row.Token == "" {
		t.Error("released without a yes")
	}
	command(t, s.Env, "release", "-y", "--namespace", "orders", "held").Expect(t, 0, "This takes the lock from f request 1", "Released orders/held")
	command(t, s.Env, "release", "orders/limited", "--yes").Expect(t, 0, "Released orders/limited")
	command(t, s.Env, "release", "orders/limited", "--yes").Expect(t, 1, "for example orders/slot:2:limited")
	command(t, s.Env, "release", "orders/slot:2:limited", "--yes").Expect(t, 0, "Released orders/slot:2:limited")
	command(t, s.Env, "release", "orders/limited", "--yes").Expect(t, 1, "nobody holds orders/limited")
}

// TestForgetOnDynamoDB: as a user does it, on the names and events that are
// stored in another way.
func TestForgetOnDynamoDB(t *testing.T) {
	t.Parallel()
	s := commandtest.NewTable(t, "locks")
	for _, name := range []string{"a", strings.Repeat("n", 3000), "slot:2:a"} {
		key := lock.Key{Name: name, Event: "the only one", Order: "05"}
		rowtest.Complete(t, s.Store, key, []byte("result"))
		forget := []string{"forget", "--namespace", "orders", name, "the only one"}
		command(t, s.Env, forget...).Expect(t, 64, "not a terminal")
		command(t, s.Env, append(forget, "--yes", "--reset-order")...).Expect(t, 0, "Forgotten")
		lk := rowtest.Acquire(t, s.Store, "f request 1", time.Hour, key) // runs again
		command(t, s.Env, append(forget, "--yes")...).Expect(t, 1, "is held by f request 1", "release it first")
		expect.Must(t, lk.Release())
		command(t, s.Env, append(forget, "--yes")...).Expect(t, 1, "does not remember")
	}
	rowtest.Complete(t, s.Store, lock.Key{Name: "b", Event: "e", Order: "05"}, nil)
	command(t, s.Env, "forget", "orders/b", "e", "--yes").Expect(t, 0, "--reset-order forgets the highest order too")
	if row := rowtest.Read(t, s.Store, "orders/b"); row.Memory.HighestOrder != "05" || len(row.Memory.Completed) != 0 {
		t.Errorf("the memory is %+v", row.Memory)
	}
	command(t, s.Env, "forget", "orders/dog", "e", "--yes").Expect(t, 1, "there is no row")
	command(t, s.Env, "forget", "orders/b", "--yes").Expect(t, 64, "expected")
}

// TestExplainGuessesNothing: an event that was completed is not said to run
// because the namespace, or the key function, is not the function's.
func TestExplainGuessesNothing(t *testing.T) {
	t.Parallel()
	s := commandtest.NewTable(t, "locks")
	key := lock.Key{Name: "s3/my-bucket/cat.png", Event: "e1"}
	rowtest.Complete(t, s.Store, key, nil)
	rowtest.Complete(t, s.Store, lock.Key{Name: "tenant/blue%2Fsea/" + key.Name, Event: "e2"}, nil)
	rowtest.Complete(t, s.Store, lock.Key{Name: "ordered", Event: "e5", Order: "05"}, nil)
	rowtest.Complete(t, s.Store, lock.Key{Name: "paid", Event: "e6", Payload: "10"}, nil)
	sample := expect.Value(filepath.Abs("../../keyfuncs/testdata/s3-put.json"))(t)
	logLine := file(t, "line", "INFO lambdalock: held key="+key.Digest()+" requests=1\n")
	plainLine := file(t, "line", "INFO lambdalock: held\n")
	refusedLine := file(t, "line", `{"msg":"lambdalock: refused","error":"lambdalock: no key: Records[0].body is null","source":"arn","record":"m1"}`)
	command(t, nil, "explain", logLine).Expect(t, 1, "give --store, or use lambdalock show --digest "+key.Digest())
	for name, c := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"right":            {[]string{"--namespace", "orders", "--name", key.Name, "--event", "e1"}, 0, "would    skip: completed"},
		"none, as exec":    {[]string{"--name", key.Name, "--event", "e1"}, 0, "would    unknown: there is no such row"},
		"another event":    {[]string{"--namespace", "orders", "--name", key.Name, "--event", "e2"}, 0, "would    run: "},
		"an older one":     {[]string{"--namespace", "orders", "--name", "ordered", "--event", "e4", "--order", "04"}, 0, "would    skip: stale"},
		"its payload":      {[]string{"--namespace", "orders", "--name", "paid", "--event", "e6"}, 0, "would    decide: completed"},
		"a tenant's":       {[]string{"--namespace", "orders", "--tenant", "blue/sea", "--name", key.Name, "--event", "e2"}, 0, "would    skip: completed"},
		"another tenant's": {[]string{"--namespace", "orders", "--tenant", "red", "--name", key.Name, "--event", "e1"}, 0, "would    unknown: there is no such row"},
		"wrong namespace":  {[]string{"--namespace", "order", "--name", key.Name, "--event", "e1"}, 0, "would    unknown: there is no such row"},
		"as list has it":   {[]string{"--namespace", "orders", "--name", "orders/" + key.Name, "--event", "e1"}, 0, "would    unknown: there is no such row. list prints another lock by this name: for that one, give --namespace orders --name " + key.Name + "\n"},
		"no namespace":     {[]string{sample}, 0, "nothing is said of the rows: give the --namespace"},
		"a log line":       {[]string{logLine}, 0, "orders/" + key.Name + "\n  digest         " + key.Digest()},
		"its namespace":    {[]string{"--namespace", "others", logLine}, 1, "no row of the namespace others has the digest"},
		"no key":           {[]string{plainLine}, 1, "this is a log line of lambdalock that is about no key"},
		"refused":          {[]string{refusedLine}, 1, "record m1 of arn was refused, and its handler did not run: Records[0].body is null. Its lock was not asked"},
		"nothing":          {nil, 64, "or give the --name of a key"},
		"both":             {[]string{"--name", "a", "event.json"}, 64, "or give the --name of a key"},
		"event of a file":  {[]string{"--event", "e1", "event.json"}, 64, "--event and --order belong to --name"},
		"order of a file":  {[]string{"--order", "05", "event.json"}, 64, "--event and --order belong to --name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := command(t, s.Env, append([]string{"explain"}, c.args...)...)
			r.Expect(t, c.status, c.says)
			if strings.Contains(r.Stdout, "would") != strings.Contains(c.says, "would") {
				t.Errorf("a verdict, or none:\n%s", r.Stdout)
			}
		})
	}
}

func TestWatchAsAUserDoes(t *testing.T) {
	t.Parallel()
	s := commandtest.NewTable(t, "locks")
	rowtest.Acquire(t, s.Store, "f request 1", time.Hour, lock.Key{Name: "a"})
	command(t, s.Env, "watch", "--interval", "1ms").Expect(t, 64, "the shortest is 100ms")
	command(t, s.Env, "list", "--held-for=-1h").Expect(t, 64, "--held-for -1h0m0s: zero or more")
	for name, args := range map[string][]string{"text": nil, "JSON": {"--json"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := prepare(t, s.Env, append([]string{"watch", "-i", "100ms"}, args...)...)
			out := expect.Value(c.StdoutPipe())(t)
			expect.Must(t, c.Start())
			line := make([]byte, 1000)
			n, _ := out.Read(line)
			if !strings.Contains(string(line[:n]), "orders/a") || !strings.Contains(string(line[:n]), "held") {
				t.Errorf("prints %q", line[:n])
			}
			expect.Must(t, c.Process.Signal(os.Interrupt))
			if err := c.Wait(); err != nil {
				t.Errorf("after Ctrl-C: %v", err)
			}
		})
	}
}
