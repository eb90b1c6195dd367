package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/commandtest"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

func TestInvoke(t *testing.T) {
	t.Parallel()
	good, bad := s3Event(t, "cat.png"), s3Event(t, "bad.png")
	for name, c := range map[string]struct {
		args   []string
		status int
		within []string
	}{
		"one":        {[]string{good}, 0, []string{"ran", `"resized"`, "LOCK_TABLE_NAME is not set"}},
		"contention": {[]string{"-n", "4", "-c", "8", "--async", "--scale", "600", "--shuffle", good}, 0, []string{`"resized"`, `""`}},
		"in one":     {[]string{"--concurrency", "8", "-c", "8", good}, 0, []string{"ran"}},
		"failing":    {[]string{good, bad}, 1, []string{"cannot read bad.png", "not completed: " + bad}},
		"no file":    {[]string{"nowhere.json"}, 1, []string{"nowhere.json"}},
		"no events":  {nil, 64, []string{"<events>"}},
		"none":       {[]string{"-n", "0", good}, 1, []string{"above zero"}},
		"no copies":  {[]string{"-c", "0", good}, 1, []string{"above zero"}},
		"too long":   {[]string{"--timeout", "16m", good}, 1, []string{"15 minutes", "--concurrency"}},
		"longer":     {[]string{"--timeout", "90m", "--concurrency", "2", good}, 0, []string{"ran"}},
		"longest":    {[]string{"--timeout", "91m", "--concurrency", "2", good}, 1, []string{"90 minutes"}},
		"too many":   {[]string{"-n", "100000", good}, 1, []string{"-n 100000", "at most"}},
		"no memory":  {[]string{"-c", "100000000", good}, 1, []string{"-c 100000000", "at most"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := invoked(t, "", c.args...)
			r.Expect(t, c.status, c.within...)
			if n := strings.Count(r.Stdout, `"resized"`); c.status == 0 && n != 1 {
				t.Errorf("the event ran %d times\n%s", n, r)
			}
		})
	}
}

// TestOutcomes: each row says whether the handler ran, which Lambda's success
// does not.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	cat, dog := s3Event(t, "cat.png"), s3Event(t, "dog.png")
	late, early := upload(t, "cat.png", "02"), upload(t, "cat.png", "01")
	for name, c := range map[string]struct {
		function string
		args     []string
		status   int
		rows     []string // in any order
		summary  string
	}{
		"ran":       {"", []string{cat, dog}, 0, []string{"ran", "ran"}, "deliveries 2   ran 2   skipped 0   failed 0   events 2   not completed 0"},
		"completed": {"", []string{"-c", "2", cat}, 0, []string{"ran", "skipped (completed)"}, "deliveries 2   ran 1   skipped 1   failed 0   events 1   not completed 0"},
		"stale":     {"latest", []string{late, early}, 0, []string{"ran", "skipped (stale)"}, "deliveries 2   ran 1   skipped 1   failed 0   events 2   not completed 0"},
		"held":      {"holder", []string{"-n", "2", "-c", "2", cat}, 0, []string{"ran", "held"}, "deliveries 2   ran 1   skipped 0   held 1   failed 0   events 1   not completed 0"},
		"skipper":   {"skipping", []string{"-n", "2", "-c", "2", cat}, 0, []string{"ran", "skipped (held)"}, "deliveries 2   ran 1   skipped 1   failed 0   events 1   not completed 0"},
		"waited":    {"waiting", []string{"-n", "2", "-c", "2", cat}, 0, []string{"ran", "skipped (waited, completed)"}, "deliveries 2   ran 1   skipped 1   failed 0   events 1   not completed 0"},
		"waited and ran": {
			"waiting",
			[]string{"-n", "2", cat, upload(t, "cat.png", "02")},
			0,
			[]string{"ran", "ran (waited)"},
			"deliveries 2   ran 2   skipped 0   failed 0   events 2   not completed 0",
		},
		"no context": {"no context", []string{cat}, 0, []string{"ran"}, "deliveries 1   ran 1   skipped 0   failed 0   events 1   not completed 0"},
		"no lock":    {"plain", []string{cat}, 0, []string{"succeeded"}, "deliveries 1   succeeded 1   failed 0   events 1   not completed 0"},
		"failed":     {"", []string{s3Event(t, "bad.png")}, 1, []string{"failed"}, "deliveries 1   ran 0   skipped 0   failed 1   events 1   not completed 1"},
		"timed out":  {"blocked", []string{"--timeout", "1s", s3Event(t, "blocked.png")}, 1, []string{"timed out"}, "deliveries 1   ran 0   skipped 0   timed out 1   failed 0   events 1   not completed 1"},
		"killed":     {"killed once", []string{cat}, 1, []string{"killed"}, "deliveries 1   ran 0   skipped 0   killed 1   failed 0   events 1   not completed 1"},
		"crashed":    {"dies", []string{cat}, 1, []string{"crashed"}, "deliveries 1   ran 0   skipped 0   crashed 1   failed 0   events 1   not completed 1"},
		"panics":     {"panics", []string{cat}, 1, []string{"failed"}, "deliveries 1   ran 0   skipped 0   failed 1   events 1   not completed 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := invoked(t, c.function, c.args...)
			r.Expect(t, c.status)
			rows := rows(r)
			slices.Sort(rows)
			slices.Sort(c.rows)
			if !slices.Equal(rows, c.rows) || summary(r) != c.summary {
				t.Errorf("rows %q, want %q; summary %q, want\n%q\n%s", rows, c.rows, summary(r), c.summary, r)
			}
		})
	}
}

// TestCrashIsNoLossWithShorterWaits: the lease of a killed attempt is not
// shortened, but a real wait of a minute would outlast it.
func TestCrashIsNoLossWithShorterWaits(t *testing.T) {
	t.Parallel()
	for function, args := range map[string][]string{
		"killed once": {"--timeout", "3s"},  // the lease ends 5 s after the start, the waits take 0.3 s
		"heartbeat":   {"--timeout", "10m"}, // the lease ends 5 s after the last renewal
		"skipper":     {},                   // a real retry would not find it held, and would not skip
	} {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			r := invoked(t, function, append(args, "-n", "2", "--async", "--scale", "600", s3Event(t, "cat.png"))...)
			r.Expect(t, 0, "not completed 0", "too early")
			rows := rows(r)
			if rows[0] != "killed" || rows[len(rows)-1] != "ran (taken over)" {
				t.Errorf("rows %q\n%s", rows, r)
			}
		})
	}
}

// TestInterrupt: after a signal that asks it to end, the command ends the
// function, and shows what happened until then.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	for s, status := range map[os.Signal]int{os.Interrupt: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			r := untilLine(t, "resized", func(c *exec.Cmd, _ io.Closer) { expect.Must(t, c.Process.Signal(s)) },
				"--timeout", "10m", "-n", "2", os.Args[0], s3Event(t, "cat.png"), s3Event(t, "blocked.png"))
			r.Expect(t, status, "blocked.png", "error: interrupted")
			if want := "deliveries 2   ran 1   skipped 0   interrupted 1   failed 0   events 2   not completed 1"; summary(r) != want {
				t.Errorf("summary %q, want\n%q\n%s", summary(r), want, r)
			}
		})
	}
}

// TestNohup: a command that ignores the end of its terminal, as under nohup,
// goes on.
func TestNohup(t *testing.T) {
	t.Parallel()
	c := invokeBlocked(t, "--timeout", "10m", "-n", "2", os.Args[0], s3Event(t, "cat.png"), s3Event(t, "blocked.png"))
	sh := expect.Value(exec.LookPath("sh"))(t)
	c.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`, c.Path}, c.Args[1:]...)
	c.Path = sh
	r := lineOf(t, c, "resized", func(c *exec.Cmd, _ io.Closer) {
		expect.Must(t, c.Process.Signal(syscall.SIGHUP))
		expect.Must(t, c.Process.Signal(syscall.SIGTERM))
	})
	r.Expect(t, 143, "error: interrupted")
}

// TestNobodyReads: when its reader has gone, as head does, the command ends the
// function before it ends.
func TestNobodyReads(t *testing.T) {
	t.Parallel()
	r := untilLine(t, "resized", func(_ *exec.Cmd, rows io.Closer) { expect.Must(t, rows.Close()) }, "-c", "1000", os.Args[0], s3Event(t, "cat.png"))
	r.Expect(t, 1, "broken pipe")
}

// untilLine runs invoke, and calls f when it has printed such a line.
func untilLine(t *testing.T, within string, f func(c *exec.Cmd, rows io.Closer), args ...string) commandtest.Result {
	t.Helper()
	return lineOf(t, invokeBlocked(t, args...), within, f)
}

// invokeBlocked is invoke with a function that never ends with blocked.png.
func invokeBlocked(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return prepare(t, []string{functionVariable + "=blocked"}, append([]string{"invoke"}, args...)...)
}

// lineOf runs a command, and calls f when it has printed such a line.
func lineOf(t *testing.T, c *exec.Cmd, within string, f func(c *exec.Cmd, rows io.Closer)) commandtest.Result {
	t.Helper()
	var stderr bytes.Buffer
	c.Stderr = &stderr
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	expect.Must(t, c.Start())
	var out strings.Builder
	lines := bufio.NewReader(io.TeeReader(stdout, &out))
	for line := ""; !strings.Contains(line, within); {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatalf("%v\n%s%s", err, &out, &stderr)
		}
	}
	f(c, stdout)
	_, _ = io.Copy(io.Discard, lines)
	_ = c.Wait()
	return commandtest.Result{Stdout: out.String(), Stderr: stderr.String(), Status: c.ProcessState.ExitCode()}
}

// TestHostileFunctions: a function can neither hang the command nor deceive its
// user.
func TestHostileFunctions(t *testing.T) {
	t.Parallel()
	cat := s3Event(t, "cat.png")
	for function, c := range map[string]struct {
		args   []string
		status int
		within string
	}{
		"exit":     {nil, 1, "no table name"},
		"garbage":  {nil, 0, "succeeded"},
		"stubborn": {nil, 0, "succeeded"},
		"parent":   {nil, 0, "succeeded"},
		"":         {[]string{"-n", "8", "-c", "200", "--async", "--scale", "600"}, 0, "deliveries "},
		"plain":    {[]string{"--concurrency", "64", "-c", "200"}, 0, "succeeded 200"},
	} {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			r := invoked(t, function, append(c.args, cat)...)
			r.Expect(t, c.status, c.within)
			if strings.Contains(r.Stdout, "\x1b") {
				t.Errorf("control characters reach the terminal\n%q", r.Stdout)
			}
		})
	}
}

// TestInvokeTables: a handler with Transact finds its own table, with its
// items.
func TestInvokeTables(t *testing.T) {
	t.Parallel()
	items := file(t, "items.json", `[{"account": "jane", "balance": 100, "address": {"town": "Bern"}}]`)
	event := s3Event(t, "a")
	invoked(t, "transact", event, "--copies", "3", "--table", "accounts=account", "--items", "accounts="+items).
		Expect(t, 0, "ran 1", "not completed 0")
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no table":   {[]string{"--items", "accounts=" + items}, "there is no --table accounts=KEY"},
		"wrong name": {[]string{"--table", "a=account"}, "--table a=account: "},
		"no file":    {[]string{"--table", "accounts=account", "--items", "accounts=/nowhere"}, "/nowhere"},
		"no array":   {[]string{"--table", "accounts=account", "--items", "accounts=" + event}, "it must hold an array of items"},
		"list":       {[]string{"--table", "accounts=account", "--items", "accounts=" + file(t, "l.json", `[{"account": ["x"]}]`)}, `the attribute "account" is ["x"]`},
		"without a":  {[]string{"--table", "accounts=account", "--items", "accounts=" + file(t, "m.json", `[{"balance": 1}]`)}, "--items accounts="},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			invoked(t, "transact", append(c.args, event)...).Expect(t, 1, c.says)
		})
	}
}

// TestInvokeForATenant: the locks of a tenant are its own.
func TestInvokeForATenant(t *testing.T) {
	t.Parallel()
	s := commandtest.NewTable(t, "locks")
	event := s3Event(t, "cat.png")
	for _, args := range [][]string{nil, {"--tenant", "blue"}} {
		command(t, s.Env, append([]string{"invoke", "--timeout", "1m", os.Args[0], event}, args...)...).Expect(t, 0, `"resized"`)
	}
	command(t, s.Env, "list", "--all").Expect(t, 0, "/tenant/blue/s3/")
}
