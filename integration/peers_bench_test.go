package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// eventTools handle one event after the other.
var eventTools = []tool{
	{"Go", "raw", "raw SDK for Go", false},
	{"Go", "lambdalock", "lambdalock", true},
	{"Go", "dynamolock", "dynamolock 2.0.3", false},
	{"Python", "raw", "raw boto3", false},
	{"Python", "powertools", "Powertools for Python 3.37.0", true},
	{"Python", "dynamo_dlm", "dynamo-dlm 2.1.0", false},
	{"Python", "dyndbmutex", "dyndbmutex 0.4.0", false},
	{"Node.js", "raw", "raw SDK for JavaScript", false},
	{"Node.js", "powertools", "Powertools for TypeScript 2.35.0", true},
}

// BenchmarkPeers compares one handled event and its duplicate with other tools.
// Events are compared with two requests of the SDK of the same language, in the
// same round. It prints the figures of docs/COMPARISON.md and draws
// docs/benchmarks.svg.
func BenchmarkPeers(b *testing.B) {
	s := peersServer(b)
	peers := startPeers(b, s, time.Minute, eventTools)
	rounds, events := 15, 20
	for b.Loop() {
		inRounds("event", peers, rounds, func(p *peer, prefix string) {
			p.blocks = append(p.blocks, p.handle(b, prefix, events, 1, events, 0))
			if p.remembers {
				p.duplicates.blocks = append(p.duplicates.blocks, p.handle(b, prefix, events, 1, 0, 0))
			}
		})
	}
	title := fmt.Sprintf("%v per request (%s)", requestDelay, s.Name)
	reportPeers(os.Stdout, peers, rounds, events)
	if err := drawPeers(filepath.Join("..", "docs", "benchmarks.svg"), peers, title); err != nil {
		b.Fatal(err)
	}
}

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

// handle handles deliveries of so many events each, for which so many handlers
// have to run, and none of which may fail.
func (p *peer) handle(b *testing.B, prefix string, deliveries, events, handlers int, work time.Duration) block {
	b.Helper()
	p.wire.take()
	p.send(b, prefix, deliveries, events, work)
	a := p.read(b)
	if len(a.Took) != deliveries || a.Tries != deliveries || a.Ran != int64(handlers) {
		b.Fatalf("%s: %d handlers ran in %d tries to make %d deliveries of %d events, want %d %s", p.tool.name, a.Ran, a.Tries, len(a.Took), events, handlers, a.Failed)
	}
	slices.Sort(a.Took)
	return block{
		runs: deliveries, requests: p.wire.take(),
		p50: time.Duration(quantile(a.Took, 0.5) * 1e6),
		cpu: time.Duration(a.CPU / float64(deliveries) * 1e6),
	}
}
