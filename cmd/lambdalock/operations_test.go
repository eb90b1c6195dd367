package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/commandtest"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/rowtest"
	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
)

// TestOperations runs every command of docs/OPERATIONS.md, in order, and
// compares what it prints with what the document shows.
func TestOperations(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skipf("the commands of the document need a shell: %v", err)
	}
	o := newOperations(t, shell)
	blocks := operationsBlocks(t)
	for _, b := range blocks {
		for _, c := range b.commands {
			got := o.run(t, c)
			if normalised(got) != normalised(c.output) {
				t.Errorf("line %d: $ %s\nprints\n%s\nwant\n%s", b.line, c.text, got, c.output)
			}
		}
	}
	if len(blocks) < 10 {
		t.Errorf("%d blocks of commands: is operationsBlocks right?", len(blocks))
	}
	o.checkActions(t)
	o.checkDoctorsActions(t)
}

// operations is the state of a person who follows the document.
type operations struct {
	*commandtest.Table
	shell, folder string
	env           []string
	status        int // of the command before

	mu   sync.Mutex
	used map[string][]string // the actions that each command used
	now  string              // the command that runs
}

// newOperations makes the locks that the document shows.
func newOperations(t *testing.T, shell string) *operations {
	t.Helper()
	o := &operations{Table: commandtest.NewTable(t, "orders-locks"), shell: shell, folder: t.TempDir(), used: map[string][]string{}}
	in := func(namespace string) func(*lock.Options) { return func(o *lock.Options) { o.Namespace = namespace } }
	const holder = "thumbnails request 8f507cfc-xmpl-4697-b07a-ac58fc914c95 log 2026/11/21/[$LATEST]48bf"
	const lease = 5 * time.Minute
	done := func(namespace string, key lock.Key) {
		expect.Must(t, rowtest.Acquire(t, o.Store, holder, lease, key, in(namespace)).Complete())
	}
	done("thumbnails", lock.Key{Name: "s3/pictures/cat.png", Event: "0055AED6DCD90281E5"})
	done("thumbnails", lock.Key{Name: "s3/pictures/bird.png", Event: "0055AED6DCD90281F4"})
	done("orders", lock.Key{Name: "customer/jane", Event: "order-17", Order: "0217"})
	done("orders", lock.Key{Name: "order/4711", Event: "4711"})
	expect.Must(t, rowtest.Acquire(t, o.Store, holder, lease, lock.Key{Name: "order/4712", Event: "4712"}, in("orders")).Release())
	rowtest.Acquire(t, o.Store, "thumbnails request 0c1d2e3f log 2026/11/21/[$LATEST]0a0b", -time.Minute, lock.Key{Name: "s3/pictures/ant.png", Event: "0055AED6DCD90281E5"}, in("thumbnails"))
	rowtest.Acquire(t, o.Store, "thumbnails request 0c1d2e3f log 2026/11/21/[$LATEST]0a0b", lease, lock.Key{Name: "s3/pictures/eel.png", Event: "0055AED6DCD90281E5"}, in("thumbnails"))
	rowtest.Acquire(t, o.Store, holder, lease, lock.Key{Name: "s3/pictures/cat.png", Event: "0055AED6DCD9028A17"}, in("thumbnails"))
	for range 2 {
		rowtest.AcquireOneOfTwo(t, o.Store, "reports request 66e42a0b log 2026/11/21/[$LATEST]77aa", lease, "render", in("reports"))
	}
	o.file(t, "upload.json", `{"Records":[{"eventSource":"aws:s3","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"pictures"},"object":{"key":"bird.png","sequencer":"0055AED6DCD90281F4"}}}]}`)
	o.file(t, "request.json", `{"version":"2.0","rawPath":"/orders","rawQueryString":"notify=yes","headers":{"host":"api.example.com","idempotency-key":"c1b7f0e2"},"body":"{\"item\":17}",`+
		`"requestContext":{"apiId":"h77p4p1x9z","stage":"$default","domainName":"api.example.com","http":{"method":"POST","path":"/orders"}}}`)
	self := expect.Value(os.Executable())(t)
	expect.Must(t, os.Symlink(self, filepath.Join(o.folder, "lambdalock")))
	o.env = append(commandtest.Environ(o.Env...), "LOCK_TABLE_NAME=", "PATH="+o.folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	o.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
		o.noteAction("dynamodb:" + r.Operation)
		return fakedynamo.None
	})
	o.env = append(o.env, deployedFunction(t, o.noteAction)...)
	return o
}

func (o *operations) file(t *testing.T, name, text string) {
	t.Helper()
	expect.Must(t, os.WriteFile(filepath.Join(o.folder, name), []byte(text), 0o600))
}

// noteAction notes an action of the command that runs.
func (o *operations) noteAction(action string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.now != "" && !slices.Contains(o.used[o.now], action) {
		o.used[o.now] = append(o.used[o.now], action)
	}
}

// run runs a command as the shell of a person does.
func (o *operations) run(t *testing.T, c shellCommand) string {
	t.Helper()
	if variable, ok := strings.CutPrefix(c.text, "export "); ok {
		o.env = append(o.env, variable)
		return ""
	}
	fields := strings.Fields(c.text)
	if fields[0] == "lambdalock" {
		o.setCommand(fields[1])
		defer o.setCommand("")
	}
	cmd := exec.CommandContext(t.Context(), o.shell, "-c", fmt.Sprintf("(exit %d); %s", o.status, c.text))
	cmd.Env, cmd.Dir = o.env, o.folder
	out, _ := cmd.CombinedOutput() // the status says it
	o.status = cmd.ProcessState.ExitCode()
	return string(out)
}

// setCommand sets the command whose actions are noted.
func (o *operations) setCommand(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now = name
}

// checkActions compares the actions that the commands used with the policies of
// docs/STORES.md.
func (o *operations) checkActions(t *testing.T) {
	t.Helper()
	blocks := regexp.MustCompile("(?ms)^```json\n(.*?)^```$").FindAllStringSubmatch(document(t, "STORES"), -1)
	if len(blocks) != 1 {
		t.Fatalf("%d policies, want one", len(blocks))
	}
	var p struct{ Statement []struct{ Action []string } }
	expect.Must(t, json.Unmarshal([]byte(blocks[0][1]), &p))
	if len(p.Statement) != 2 {
		t.Fatalf("%d statements, want one to look and one to repair", len(p.Statement))
	}
	policies := [][]string{p.Statement[0].Action, slices.Concat(p.Statement[0].Action, p.Statement[1].Action)}
	var look, repair []string
	for name, used := range o.used {
		used = slices.DeleteFunc(slices.Clone(used), func(action string) bool { return !strings.HasPrefix(action, "dynamodb:") }) // of --function and redrive
		switch name {
		case "create-table", "doctor", "exec":
			continue
		case "release", "forget", "complete":
		default:
			look = append(look, used...)
		}
		repair = append(repair, used...)
	}
	for i, used := range [][]string{look, repair} {
		slices.Sort(used)
		slices.Sort(policies[i])
		if used = slices.Compact(used); !slices.Equal(used, policies[i]) {
			t.Errorf("statement %d allows %v, the commands use %v", i+1, policies[i], used)
		}
	}
}

// checkDoctorsActions compares the actions that doctor used with those in the
// table of docs/STORES.md.
func (o *operations) checkDoctorsActions(t *testing.T) {
	t.Helper()
	var listed []string
	for line := range strings.Lines(document(t, "STORES")) {
		if strings.HasPrefix(line, "| `doctor") || strings.HasPrefix(line, "| `--function`") {
			listed = append(listed, regexp.MustCompile(`[a-z]+:[A-Z]\w+`).FindAllString(line, -1)...)
		}
	}
	used := o.used["doctor"]
	for _, action := range used {
		// A refusal of DescribeEndpoints is an answer, too.
		if !slices.Contains(listed, action) && action != "dynamodb:DescribeEndpoints" {
			t.Errorf("doctor uses %s, which the table does not list", action)
		}
	}
	for _, action := range listed {
		if !slices.Contains(used, action) && action != "kinesis:DescribeStreamSummary" && action != "dynamodb:ListTables" { // the function has no stream, and a table
			t.Errorf("the table lists %s, which doctor does not use", action)
		}
	}
}

// shellCommand is a command and what it prints.
type shellCommand struct{ text, output string }

// block is a code block of commands.
type block struct {
	line     int
	commands []shellCommand
}

func document(t *testing.T, name string) string {
	t.Helper()
	return string(expect.Value(os.ReadFile("../../docs/" + name + ".md"))(t))
}

func operationsBlocks(t *testing.T) []block {
	t.Helper()
	var all []block
	var b block
	inside := false
	for i, line := range strings.Split(document(t, "OPERATIONS"), "\n") {
		switch {
		case line == "```console":
			inside, b.line = true, i+1
		case inside && line == "```":
			all, b, inside = append(all, b), block{}, false
		case inside && strings.HasPrefix(line, "$ "):
			b.commands = append(b.commands, shellCommand{text: line[2:]})
		case inside:
			b.commands[len(b.commands)-1].output += line + "\n"
		}
	}
	return all
}

// normal replaces what differs from run to run.
var normal = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`\d\d:\d\d:\d\d`), "CLOCK"},
	{regexp.MustCompile(`\((in )?[0-9dhms]+( ago)?\)`), "(SPAN$2)"},
	{regexp.MustCompile(`\b\d{16}\b`), "FENCE"},
	{regexp.MustCompile(`RequestID: \w+`), "RequestID: ID"},
	{regexp.MustCompile(`takes [0-9.]+[µm]?s`), "takes TIME"},
	{regexp.MustCompile(`  +`), "  "},
}

func normalised(text string) string {
	for _, n := range normal {
		text = n.pattern.ReplaceAllString(text, n.by)
	}
	return text
}
