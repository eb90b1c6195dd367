package main

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/commandtest"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/shell"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/storeurl"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/patience"
)

// What the tests call most.
var (
	command = commandtest.Run
	prepare = commandtest.Prepare
	execute = commandtest.Execute
	begin   = commandtest.Begin
)

// TestMain lets the test binary be the command, and the function that the
// command invokes.
func TestMain(m *testing.M) {
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" {
		functions[os.Getenv(functionVariable)]()
		return
	}
	if os.Getenv(patientVariable) != "" {
		commandtest.Main(m, func() { run(patience.With(context.Background())) })
		return
	}
	commandtest.Main(m, main)
}

// patientVariable makes exec wait for a store as long as a busy machine needs.
const patientVariable = "LAMBDALOCK_TEST_PATIENT"

// rows are the outcomes of the deliveries, in the order of their ends.
func rows(r commandtest.Result) []string {
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^ *[0-9.]+s +\d+ +[0-9.]+s  (\S+(?: \S+)*)`).FindAllStringSubmatch(r.Stdout, -1) {
		all = append(all, m[1])
	}
	return all
}

// summary is the line under the rows.
func summary(r commandtest.Result) string {
	return regexp.MustCompile(`(?m)^deliveries .*$`).FindString(r.Stdout)
}

// messages is the line about the records of batches.
func messages(r commandtest.Result) string {
	return regexp.MustCompile(`(?m)^(messages|records) delivered .*$`).FindString(r.Stdout)
}

// invoked runs the command with one of the functions.
func invoked(t *testing.T, function string, args ...string) commandtest.Result {
	t.Helper()
	return command(t, []string{functionVariable + "=" + function, folderVariable + "=" + t.TempDir()}, append([]string{"invoke", os.Args[0]}, args...)...)
}

func TestCreateTable(t *testing.T) {
	t.Parallel()
	table := commandtest.NewTable(t, "other")
	env := append(table.Env, "LOCK_TABLE_NAME=")
	command(t, env, "create-table").Expect(t, 64, "LOCK_TABLE_NAME")
	for range 2 {
		command(t, env, "create-table", "orders-locks").Expect(t, 0, "Table orders-locks is ready")
	}
	command(t, append(env, "LOCK_TABLE_NAME=by-variable"), "create-table").Expect(t, 0, "by-variable")
	command(t, append(env, "AWS_REGION="), "create-table", "x").Expect(t, 64, "AWS_REGION")
	command(t, append(env, "AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:1"), "create-table", "x").Expect(t, 69, "127.0.0.1:1")
	// The store's URL is obeyed, with its Region and its endpoint.
	elsewhere := append(env, "AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:1", "LAMBDALOCK_STORE=dynamodb://by-url?region=eu-west-3&endpoint="+table.URL)
	command(t, elsewhere, "create-table").Expect(t, 0, "Table by-url is ready in eu-west-3")
	command(t, elsewhere, "create-table", "by-name").Expect(t, 0, "Table by-name is ready in eu-west-3")
	command(t, env, "create-table", "--store", "dynamodb://by-flag").Expect(t, 0, "Table by-flag is ready")
	for _, args := range [][]string{nil, {"by-name"}} {
		command(t, append(env, "LAMBDALOCK_STORE=redis://127.0.0.1:1"), append([]string{"create-table"}, args...)...).Expect(t, 64, `names no table, but "redis://"`)
	}
}

func TestDemoRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	command(t, nil, "demo", "-n", "3").Expect(t, 1, "at least 4")
	command(t, nil, "demo", "--store", "redis://:pa#ss@127.0.0.1:1/0").Expect(t, 1, "Lock store: redis://.\n", "server 1 of the store's URL")
	command(t, nil, "demo", "--store", "redis://:pass@127.0.0.1:1/0,redis://127.0.0.1:2,redis://127.0.0.1:3?a=b").Expect(t, 1, "Lock store: redis://127.0.0.1:1/0, redis://127.0.0.1:2, redis://127.0.0.1:3.\n")
	command(t, nil, "demo", "--html", "/nowhere/demo.html").Expect(t, 1, "/nowhere/demo.html")
}

func TestVersion(t *testing.T) {
	t.Parallel()
	command(t, nil, "--version").Expect(t, 0, "lambdalock ", "go1.")
}

// parser returns what reads the arguments.
func parser(t *testing.T) *kong.Kong {
	t.Helper()
	parser := expect.Value(kong.New(&cli{}, kong.NamedMapper("wait", kong.MapperFunc(shell.DecodeWait)), kong.Vars{"version": "", "storeForms": storeurl.Forms}))(t)
	return parser
}

// TestExamplesOfHelp: the help of each command has examples, which its flags
// allow.
func TestExamplesOfHelp(t *testing.T) {
	t.Parallel()
	for _, command := range parser(t).Model.Leaves(true) {
		_, examples, _ := strings.Cut(command.Detail, "Examples:\n")
		lines := strings.Split(examples, "\n")
		for _, line := range lines {
			line = regexp.MustCompile(` [#|>].*`).ReplaceAllString(line, "")
			args, ok := strings.CutPrefix(line, "  lambdalock "+command.Name)
			if !ok {
				t.Errorf("%s has the example %q", command.Name, line)
			}
			if _, err := parser(t).Parse(append([]string{command.Name}, strings.Fields(args)...)); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}
