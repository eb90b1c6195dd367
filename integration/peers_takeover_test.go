package integration_test

import (
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"
)

// takeoverTools have the raw SDK of one language only: those of the others send
// the same requests.
var takeoverTools = slices.DeleteFunc(slices.Clone(leaseTools), func(t tool) bool { return t.id == "raw" && t.language != "Go" })

// takeovers are what became of a tool's events whose first handler died.
type takeovers struct{ waited, requests []float64 }

// lateBy is when the event comes again that comes late, after the lease.
const lateBy = time.Second

// BenchmarkTakeoverPeers compares what tools do with an event whose process
// died in the handler, if it comes again at once, or after the lease. It prints
// the figures of docs/COMPARISON.md.
func BenchmarkTakeoverPeers(b *testing.B) {
	peers := startPeers(b, peersServer(b), crashLease, takeoverTools)
	early, late := make([]takeovers, len(peers)), make([]takeovers, len(peers))
	rounds := 5
	for b.Loop() {
		inRounds("warm", peers, 0, func(p *peer, prefix string) { p.handle(b, prefix, 1, 1, 1, 0) })
		for r := range rounds {
			takeOverEarly(b, peers, early, fmt.Sprint("early/", r, "/"))
			takeOverLate(b, peers, late, fmt.Sprint("late/", r, "/"))
		}
	}
	reportTakeovers(os.Stdout, peers, early, late, rounds)
}

// takeOverEarly delivers the events again at once. It measures from the end of
// the leases.
func takeOverEarly(b *testing.B, peers []*peer, taken []takeovers, prefix string) {
	b.Helper()
	ends := make([]float64, len(peers))
	for i, p := range peers {
		ends[i] = p.die(b, prefix)
		p.send(b, prefix+p.slug(), 1, 1, 0)
		_ = delayFor(b.Context(), apart)
	}
	for i, p := range peers {
		taken[i].add(p.one(b).Began-ends[i], p.wire.take())
	}
}

// takeOverLate delivers the events again when their leases are over. It
// measures from then on.
func takeOverLate(b *testing.B, peers []*peer, taken []takeovers, prefix string) {
	b.Helper()
	ends := make([]float64, len(peers))
	for i, p := range peers {
		ends[i] = p.die(b, prefix)
		_ = delayFor(b.Context(), apart)
	}
	for i, p := range peers {
		_ = delayFor(b.Context(), lateBy+time.Duration((ends[i]-moment())*1e6))
		p.send(b, prefix+p.slug(), 1, 1, 0)
	}
	for i, p := range peers {
		a := p.one(b)
		taken[i].add(a.Began-a.Asked, p.wire.take())
	}
}

// die lets another process of the tool die in the handler of an event. It
// returns when the lease ends.
func (p *peer) die(b *testing.B, prefix string) float64 {
	b.Helper()
	q := p.launch(b)
	q.send(b, prefix+p.slug(), 1, 1, dies)
	a := q.one(b)
	if a.Ended != 0 {
		b.Fatalf("%s: the handler ended, so its process did not die in it", q.name)
	}
	p.wire.take()
	return a.Asked + float64(p.lease.Milliseconds())
}

func (t *takeovers) add(waited float64, requests int64) {
	t.waited, t.requests = append(t.waited, waited), append(t.requests, float64(requests))
}

func reportTakeovers(w io.Writer, peers []*peer, early, late []takeovers, rounds int) {
	fmt.Fprintf(w, "\n### A crash\n\nA process dies in its handler, and another one gets the event: at once, or %.0f s after the lease.\n"+
		"Leases of %.0f s, %d crashes of each kind.\n\n", lateBy.Seconds(), crashLease.Seconds(), rounds)
	fmt.Fprintf(w, "| tool | comes at once: ms after the lease | requests | comes %.0f s after it: ms | requests |\n", lateBy.Seconds())
	fmt.Fprintln(w, "|---|---|---|---|---|")
	for i, p := range peers {
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", p.tool.name, spread(early[i].waited, 0), spread(early[i].requests, 0),
			spread(late[i].waited, 0), spread(late[i].requests, 0))
	}
}
