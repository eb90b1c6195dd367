package integration_test

import (
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
)

// apart is how long after each other tools begin that are measured at the same
// time, because they mostly wait.
const apart = 200 * time.Millisecond

// leaseTools handle one event, all of them under a lease of the same length.
var leaseTools = slices.Concat(eventTools[:1], []tool{{"Go", "lambdalock_lease", "lambdalock", false}}, eventTools[2:])

// lostAnswers are what became of a tool's events.
type lostAnswers struct{ until, requests, ran []float64 }

// BenchmarkLostAnswerPeers compares what tools do if the write that takes the
// lock was applied, but its answer was lost with its connection. It prints the
// figures of docs/COMPARISON.md.
func BenchmarkLostAnswerPeers(b *testing.B) {
	peers := startPeers(b, peersServer(b), crashLease, leaseTools)
	lost, usual := make([]lostAnswers, len(peers)), make([]int64, len(peers))
	rounds := 10
	for b.Loop() {
		for r := range rounds + 1 { // at first, no answer is lost
			for _, p := range peers {
				if r > 0 {
					p.loseAnswer()
				}
				p.wire.take()
				p.send(b, fmt.Sprint("lost/", r, "/", p.slug()), 1, 1, 0)
				_ = delayFor(b.Context(), apart)
			}
			for i, p := range peers {
				a, requests := p.one(b), p.wire.take()
				if r == 0 {
					usual[i] = requests
					continue
				}
				if requests <= usual[i] {
					b.Fatalf("%s sent %d requests, as if no answer were lost", p.tool.name, requests)
				}
				l := &lost[i]
				l.until, l.requests, l.ran = append(l.until, a.Began-a.Asked), append(l.requests, float64(requests)), append(l.ran, float64(a.Ran))
			}
		}
	}
	reportLostAnswers(os.Stdout, peers, lost, rounds)
}

// loseAnswer loses the answer to the next write that takes a lock.
func (p *peer) loseAnswer() {
	switch p.id {
	case "raw", "lambdalock_lease":
		p.faults.Plan("UpdateItem", fault.ApplyThenDrop)
	case "dyndbmutex": // it first removes a lease that has ended
		p.faults.Plan("PutItem", fault.None, fault.ApplyThenDrop)
	default:
		p.faults.Plan("PutItem", fault.ApplyThenDrop)
	}
}

func reportLostAnswers(w io.Writer, peers []*peer, lost []lostAnswers, rounds int) {
	fmt.Fprintf(w, "\n### A lost answer\n\nThe write that takes the lock is applied, and the connection breaks before its answer.\n"+
		"Leases of %.0f s, %d events for each tool.\n\n", crashLease.Seconds(), rounds)
	fmt.Fprintln(w, "| tool | ms until its handler began | requests | its handler ran |")
	fmt.Fprintln(w, "|---|---|---|---|")
	for i, p := range peers {
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", p.tool.name, spread(lost[i].until, 0), spread(lost[i].requests, 0), spread(lost[i].ran, 0))
	}
}
