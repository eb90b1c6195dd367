package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/shell"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/storeurl"
	"github.com/lambdalock/lambdalock/internal/local/localtable"
)

// The test binary is the command, and the function that the command invokes.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv(userVariable) != "":
		asOtherUser()
	case os.Getenv("AWS_LAMBDA_RUNTIME_API") != "":
		functions[os.Getenv(functionVariable)]()
	case os.Getenv("LAMBDALOCK_TEST_COMMAND") != "":
		main()
	default:
		dontIgnoreSignals()
		os.Exit(m.Run())
	}
}

// run is one run of the command.
type run struct {
	stdout, stderr string
	status         int
}

func (r run) String() string { return r.stdout + r.stderr }

// rows are the outcomes of the deliveries, in the order of their ends.
func (r run) rows() []string {
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^ *[0-9.]+s +\d+ +[0-9.]+s  (\S+(?: \S+)*)`).FindAllStringSubmatch(r.stdout, -1) {
		all = append(all, m[1])
	}
	return all
}

// summary is the line under the rows.
func (r run) summary() string {
	return regexp.MustCompile(`(?m)^deliveries .*$`).FindString(r.stdout)
}

// messages is the line about the records of batches.
func (r run) messages() string {
	return regexp.MustCompile(`(?m)^(messages|records) delivered .*$`).FindString(r.stdout)
}

// noAWS is an environment that knows nothing of AWS.
var noAWS = []string{
	"LAMBDALOCK_TEST_COMMAND=1", "LOCK_TABLE_NAME=", "AWS_ENDPOINT_URL_DYNAMODB=", "AWS_PROFILE=", "AWS_REGION=", "AWS_DEFAULT_REGION=",
	"AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_SESSION_TOKEN=", "AWS_CONFIG_FILE=/nowhere", "AWS_SHARED_CREDENTIALS_FILE=/nowhere",
	"AWS_EC2_METADATA_DISABLED=true", "GORACE=atexit_sleep_ms=0",
}

// prepare makes a run of the command that is not begun.
func prepare(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], args...)
	c.Env = append(append(os.Environ(), noAWS...), env...)
	c.Dir = t.TempDir()
	return c
}

func execute(t *testing.T, c *exec.Cmd) run {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return run{stdout.String(), stderr.String(), c.ProcessState.ExitCode()}
}

// command runs lambdalock as a user does.
func command(t *testing.T, env []string, args ...string) run {
	t.Helper()
	return execute(t, prepare(t, env, args...))
}

// invoked runs one of the functions above.
func invoked(t *testing.T, function string, args ...string) run {
	t.Helper()
	return command(t, []string{functionVariable + "=" + function, folderVariable + "=" + t.TempDir()}, append([]string{"invoke", os.Args[0]}, args...)...)
}

func (r run) expect(t *testing.T, status int, within ...string) {
	t.Helper()
	if r.status != status {
		t.Errorf("status %d, want %d\n%s", r.status, status, r)
	}
	for _, want := range within {
		if !strings.Contains(r.String(), want) {
			t.Errorf("no %q in\n%s", want, r)
		}
	}
	if twice := regexp.MustCompile(`(?m)^lambdalock: .*\blambdalock: .*`).FindString(r.stderr); twice != "" {
		t.Errorf("it says who speaks more than once: %s", twice)
	}
}

func TestCreateTable(t *testing.T) {
	t.Parallel()
	table, err := localtable.Start(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	env := append(table.Env, "LOCK_TABLE_NAME=")
	command(t, env, "create-table").expect(t, 64, "LOCK_TABLE_NAME")
	for range 2 {
		command(t, env, "create-table", "orders-locks").expect(t, 0, "Table orders-locks is ready")
	}
	command(t, append(env, "LOCK_TABLE_NAME=by-variable"), "create-table").expect(t, 0, "by-variable")
	command(t, append(env, "AWS_REGION="), "create-table", "x").expect(t, 64, "AWS_REGION")
	command(t, append(env, "AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:1"), "create-table", "x").expect(t, 69, "127.0.0.1:1")
	// The store's URL is obeyed, with its Region and its endpoint.
	elsewhere := append(env, "AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:1", "LAMBDALOCK_STORE=dynamodb://by-url?region=eu-west-3&endpoint="+table.URL)
	command(t, elsewhere, "create-table").expect(t, 0, "Table by-url is ready in eu-west-3")
	command(t, elsewhere, "create-table", "by-name").expect(t, 0, "Table by-name is ready in eu-west-3")
	command(t, env, "create-table", "--store", "dynamodb://by-flag").expect(t, 0, "Table by-flag is ready")
	for _, args := range [][]string{nil, {"by-name"}} {
		command(t, append(env, "LAMBDALOCK_STORE=redis://127.0.0.1:1"), append([]string{"create-table"}, args...)...).expect(t, 64, `names no table, but "redis://"`)
	}
}

func TestDemoRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	command(t, nil, "demo", "-n", "3").expect(t, 1, "at least 4")
	command(t, nil, "demo", "--store", "redis://:pa#ss@127.0.0.1:1/0").expect(t, 1, "Lock store: redis://.\n", "server 1 of the store's URL")
	command(t, nil, "demo", "--store", "redis://:pass@127.0.0.1:1/0,redis://127.0.0.1:2,redis://127.0.0.1:3?a=b").expect(t, 1, "Lock store: redis://127.0.0.1:1/0, redis://127.0.0.1:2, redis://127.0.0.1:3.\n")
	command(t, nil, "demo", "--html", "/nowhere/demo.html").expect(t, 1, "/nowhere/demo.html")
}

func TestVersion(t *testing.T) {
	t.Parallel()
	command(t, nil, "--version").expect(t, 0, "lambdalock ", "go1.")
}

// parser returns what reads the arguments.
func parser(t *testing.T) *kong.Kong {
	t.Helper()
	parser, err := kong.New(&cli{}, kong.NamedMapper("wait", kong.MapperFunc(shell.DecodeWait)), kong.Vars{"version": "", "storeForms": storeurl.Forms})
	if err != nil {
		t.Fatal(err)
	}
	return parser
}

// TestExamplesOfHelp: the help of each command has examples, which its flags
// allow.
func TestExamplesOfHelp(t *testing.T) {
	t.Parallel()
	parser := parser(t)
	for _, command := range parser.Model.Leaves(true) {
		_, examples, _ := strings.Cut(command.Detail, "Examples:\n")
		lines := strings.Split(examples, "\n")
		for _, line := range lines {
			line = regexp.MustCompile(` [#|>].*`).ReplaceAllString(line, "")
			args, ok := strings.CutPrefix(line, "  lambdalock "+command.Name)
			if !ok {
				t.Errorf("%s has the example %q", command.Name, line)
			}
			if _, err := parser.Parse(append([]string{command.Name}, strings.Fields(args)...)); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}
