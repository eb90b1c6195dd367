package integration_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/integration/servers"
)

// peersVariable lets BenchmarkPeers download the other tools.
const peersVariable = "LAMBDALOCK_PEERS"

// peer is a tool in a process of its own, behind a proxy of its own.
type peer struct {
	*contestant
	raw        *peer
	remembers  bool        // that an event was handled, so duplicates are measured
	duplicates *contestant // of the events; no blocks if they are not remembered
	runtime    string
	stdin      io.Writer
	lines      *json.Decoder
}

// BenchmarkPeers compares one handled event, its duplicate, and a batch with
// other tools. Events are compared with two requests of the SDK of the same
// language, in the same round. It prints the tables of docs/BENCHMARKS.md and
// draws docs/benchmarks.svg.
func BenchmarkPeers(b *testing.B) {
	if os.Getenv(peersVariable) == "" {
		b.Skip("downloads other tools: run make bench PEERS=1")
	}
	s := servers.Dynoxide(b)
	newTable(b, s)
	const delay = 5 * time.Millisecond
	peers := startPeers(b, s, delay)
	rounds, events := 15, 20
	batches, batchRounds, size := startBatchPeers(b, s, delay), 5, 100
	for b.Loop() {
		inRounds("event", peers, rounds, func(p *peer, prefix string) {
			p.blocks = append(p.blocks, p.handle(b, prefix, events, 1, events))
			if p.remembers {
				p.duplicates.blocks = append(p.duplicates.blocks, p.handle(b, prefix, events, 1, 0))
			}
		})
		inRounds("batch", batches, batchRounds, func(p *peer, prefix string) {
			p.blocks = append(p.blocks, p.handle(b, prefix, 1, size, size))
		})
	}
	title := fmt.Sprintf("%v per request (%s)", delay, s.Name)
	reportPeers(os.Stdout, peers, title, rounds, events)
	reportBatches(os.Stdout, batches, batchRounds, size)
	if err := drawPeers(filepath.Join("..", "docs", "benchmarks.svg"), peers, title); err != nil {
		b.Fatal(err)
	}
}

// program handles events with tools of one language. Its last argument is the
// tool.
type program struct{ args, env []string }

// inRounds lets each of them handle events in each round, and once before, to
// warm up.
func inRounds(scenario string, peers []*peer, rounds int, handle func(p *peer, prefix string)) {
	for r := range rounds + 1 {
		for i := range peers {
			p := peers[(i+r)%len(peers)]
			handle(p, fmt.Sprint(scenario, "/", r, "/", p.slug()))
		}
		if r == 0 {
			for _, p := range peers {
				p.blocks, p.duplicates.blocks = nil, nil
			}
		}
	}
}

// tool is a way to handle events, in one of the programs.
type tool struct {
	language, tool, name string
	remembers            bool
}

func startPeers(b *testing.B, s servers.Server, delay time.Duration) []*peer {
	b.Helper()
	return startTools(b, s, delay, []tool{
		{"Go", "raw", "raw SDK for Go", false},
		{"Go", "lambdalock", "lambdalock", true},
		{"Go", "dynamolock", "dynamolock 2.0.3", false},
		{"Python", "raw", "raw boto3", false},
		{"Python", "powertools", "Powertools for Python 3.37.0", true},
		{"Python", "dynamo_dlm", "dynamo-dlm 2.1.0", false},
		{"Python", "dyndbmutex", "dyndbmutex 0.4.0", false},
		{"Node.js", "raw", "raw SDK for JavaScript", false},
		{"Node.js", "powertools", "Powertools for TypeScript 2.35.0", true},
	})
}

// startBatchPeers starts those that handle a batch of messages. They get each
// batch once.
func startBatchPeers(b *testing.B, s servers.Server, delay time.Duration) []*peer {
	b.Helper()
	return startTools(b, s, delay, []tool{
		{"Go", "raw_batch", "raw SDK for Go, 16 at a time", false},
		{"Go", "lambdalock_batch", "lambdalock, 16 at a time", false},
		{"Go", "dynamolock", "dynamolock 2.0.3, one by one", false},
		{"Python", "powertools_batch", "Powertools for Python 3.37.0", false},
		{"Node.js", "powertools_batch", "Powertools for TypeScript 2.35.0", false},
	})
}

func startTools(b *testing.B, s servers.Server, delay time.Duration, tools []tool) []*peer {
	b.Helper()
	programs := map[string]program{
		"Go":      {[]string{os.Args[0]}, []string{roleVariable + "=peer", taskVariable + "={}"}},
		"Python":  {[]string{servers.PythonPackages(b, "peers/requirements.txt"), "peers/worker.py"}, nil},
		"Node.js": {[]string{"node", "--no-warnings", "peers/worker.js"}, []string{"NODE_PATH=" + servers.NodePackages(b, "peers/package-lock.json")}},
	}
	var all []*peer
	raw := map[string]*peer{}
	for _, c := range tools {
		w := newWire(delay)
		p := &peer{contestant: &contestant{name: c.name, wire: w}, duplicates: &contestant{}, remembers: c.remembers}
		if c.tool == "raw" {
			raw[c.language] = p
		}
		p.raw = raw[c.language]
		p.start(b, programs[c.language], c.tool, proxyTo(b, s, w))
		all = append(all, p)
	}
	return all
}

// proxyTo returns the address of a proxy that counts and delays requests.
func proxyTo(b *testing.B, s servers.Server, w *wire) string {
	b.Helper()
	u, err := url.Parse(s.Endpoint)
	if err != nil {
		b.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Transport: w, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }})
	b.Cleanup(func() {
		proxy.Close()
		w.next.CloseIdleConnections()
	})
	return proxy.URL
}

func (p *peer) start(b *testing.B, run program, tool, endpoint string) {
	b.Helper()
	args := append(slices.Clone(run.args), tool)
	cmd := exec.CommandContext(b.Context(), args[0], args[1:]...)
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), endpointVariable + "=" + endpoint, "AWS_REGION=" + region, "AWS_DEFAULT_REGION=" + region,
		"AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret", "AWS_LAMBDA_FUNCTION_NAME=peers",
	}, run.env...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Wait() }) // the end of the context has killed it
	p.stdin, p.lines = stdin, json.NewDecoder(stdout)
	p.runtime = p.read(b).Runtime
}

func (p *peer) read(b *testing.B) (a peerAnswer) {
	b.Helper()
	if err := p.lines.Decode(&a); err != nil {
		b.Fatalf("%s: no answer: %v", p.name, err)
	}
	return a
}

// handle handles deliveries of so many events each, for which so many handlers
// have to run.
func (p *peer) handle(b *testing.B, prefix string, deliveries, events, handlers int) block {
	b.Helper()
	p.wire.take()
	if _, err := fmt.Fprintln(p.stdin, prefix, deliveries, events); err != nil {
		b.Fatal(err)
	}
	a := p.read(b)
	if len(a.Took) != deliveries || a.Ran != int64(handlers) {
		b.Fatalf("%s: %d handlers ran for %d deliveries of %d events, want %d", p.name, a.Ran, len(a.Took), events, handlers)
	}
	slices.Sort(a.Took)
	return block{
		runs: deliveries, requests: p.wire.take(),
		p50: time.Duration(quantile(a.Took, 0.5) * 1e6),
		cpu: time.Duration(a.CPU / float64(deliveries) * 1e6),
	}
}

// slug makes the names of a tool's events its own.
func (p *peer) slug() string { return strings.ReplaceAll(p.name, " ", "-") + "/" }
