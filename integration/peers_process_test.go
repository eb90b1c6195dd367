package integration_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
)

// peersVariable lets the benchmarks of peers download the other tools.
const peersVariable = "LAMBDALOCK_PEERS"

// tool is a way to handle events, in one of the programs.
type tool struct {
	language, id, name string
	remembers          bool // that an event was handled, so duplicates are measured
}

// program handles events with tools of one language. Its last arguments are
// the tool and its lease.
type program struct{ args, env []string }

// peer is a tool in a process of its own, behind a proxy of its own.
type peer struct {
	*contestant
	*process
	tool
	raw        *peer
	duplicates *contestant // of the events; no blocks if they are not remembered
	faults     *fault.Script
	program    program
	endpoint   string
	lease      time.Duration
}

// process handles events with a tool, as peers/worker.py says.
type process struct {
	name    string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	lines   *json.Decoder
	runtime string
}

// peersServer starts a server with the tables of all tools.
func peersServer(b *testing.B) servers.Server {
	b.Helper()
	if os.Getenv(peersVariable) == "" {
		b.Skip("downloads other tools: run make bench PEERS=1")
	}
	s := servers.Dynoxide(b)
	client := newTable(b, s)
	createTable(b, client, "Mutex", "lockname")
	resource, concurrency := "resource_id", "concurrency_id"
	_, err := client.CreateTable(b.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("dynamo_dlm_locks"), BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{
			{AttributeName: &resource, KeyType: types.KeyTypeHash}, {AttributeName: &concurrency, KeyType: types.KeyTypeRange},
		},
		AttributeDefinitions: []types.AttributeDefinition{
			stringAttribute(resource), {AttributeName: &concurrency, AttributeType: types.ScalarAttributeTypeN},
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// startPeers starts a process of each tool. The raw SDK of a language comes
// before its tools.
func startPeers(b *testing.B, s servers.Server, lease time.Duration, tools []tool) []*peer {
	b.Helper()
	programs := peerPrograms(b)
	var all []*peer
	raw := map[string]*peer{}
	for _, t := range tools {
		w, faults := newWire(requestDelay), &fault.Script{}
		w.plan = faults
		p := &peer{
			contestant: &contestant{name: t.name, wire: w}, duplicates: &contestant{}, faults: faults, tool: t,
			program: programs[t.language], endpoint: proxyTo(b, s, w), lease: lease,
		}
		if t.id == "raw" {
			raw[t.language] = p
		}
		p.raw = raw[t.language]
		p.process = p.launch(b)
		all = append(all, p)
	}
	return all
}

// peerPrograms are those of each language.
func peerPrograms(tb testing.TB) map[string]program {
	tb.Helper()
	return map[string]program{
		"Go":      {[]string{os.Args[0]}, []string{roleVariable + "=peer", taskVariable + "={}"}},
		"Python":  {[]string{servers.PythonPackages(tb, "peers/requirements.txt"), "peers/worker.py"}, nil},
		"Node.js": {[]string{"node", "--no-warnings", "peers/worker.js"}, []string{"NODE_PATH=" + servers.NodePackages(tb, "peers/package-lock.json")}},
	}
}

// proxyTo returns the address of a proxy that counts and delays requests. What
// the wire loses breaks the connection.
func proxyTo(b *testing.B, s servers.Server, w *wire) string {
	b.Helper()
	u := expect.Value(url.Parse(s.Endpoint))(b)
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Transport: w, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	})
	b.Cleanup(func() {
		proxy.Close()
		w.next.CloseIdleConnections()
	})
	return proxy.URL
}

// launch starts a process of the tool.
func (p *peer) launch(tb testing.TB) *process {
	tb.Helper()
	args := append(slices.Clone(p.program.args), p.id, fmt.Sprint(p.lease.Milliseconds()))
	cmd := exec.CommandContext(tb.Context(), args[0], args[1:]...)
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), endpointVariable + "=" + p.endpoint, "AWS_REGION=" + region, "AWS_DEFAULT_REGION=" + region,
		"AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret", "AWS_LAMBDA_FUNCTION_NAME=peers",
	}, p.program.env...)
	cmd.Stderr = os.Stderr
	stdout := expect.Value(cmd.StdoutPipe())(tb)
	stdin := expect.Value(cmd.StdinPipe())(tb)
	expect.Must(tb, cmd.Start())
	tb.Cleanup(func() { _ = cmd.Wait() }) // the end of the context has killed it
	q := &process{name: p.tool.name, cmd: cmd, stdin: stdin, lines: json.NewDecoder(stdout)}
	q.runtime = q.read(tb).Runtime
	return q
}

// send lets the process deliver so many events so many times, to a handler that
// takes so long. Its answer has to be read.
func (q *process) send(b *testing.B, prefix string, deliveries, events int, work time.Duration) {
	b.Helper()
	if _, err := fmt.Fprintln(q.stdin, prefix, deliveries, events, work.Milliseconds()); err != nil {
		b.Fatal(err)
	}
}

func (q *process) read(tb testing.TB) (a peerAnswer) {
	tb.Helper()
	if err := q.lines.Decode(&a); err != nil {
		tb.Fatalf("%s: no answer: %v", q.name, err)
	}
	return a
}

// one reads the answer for one event, whose handler has to have run.
func (q *process) one(b *testing.B) peerAnswer {
	b.Helper()
	a := q.read(b)
	if a.Ran == 0 {
		b.Fatalf("%s: no handler ran in %d tries %s", q.name, a.Tries, a.Failed)
	}
	return a
}

// end lets the process end, and returns the CPU time that it has used.
func (q *process) end(b *testing.B) time.Duration {
	b.Helper()
	_ = q.stdin.Close()
	if err := q.cmd.Wait(); err != nil {
		b.Fatalf("%s: %v", q.name, err)
	}
	return q.cmd.ProcessState.UserTime() + q.cmd.ProcessState.SystemTime()
}

// slug makes the names of a tool's events its own.
func (p *peer) slug() string { return strings.ReplaceAll(p.tool.name, " ", "-") + "/" }
