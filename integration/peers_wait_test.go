package integration_test

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock/locktest"
)

// waitTools are locks. Powertools excludes only a second handler of the same
// event, and the raw SDKs of all languages send the same requests.
var waitTools = slices.DeleteFunc(slices.Clone(leaseTools), func(t tool) bool {
	return t.id == "powertools" || t.id == "raw" && t.language != "Go"
})

// passes are how a tool passed a name around in each round.
type passes struct{ wall, requests, fairness []float64 }

// BenchmarkWaitPeers passes one name among eight processes of each tool. It
// prints the figures of docs/COMPARISON.md.
func BenchmarkWaitPeers(b *testing.B) {
	peers := startPeers(b, peersServer(b), contendedLease, waitTools)
	passed := make([]passes, len(peers))
	rounds := 5
	for b.Loop() {
		inRounds("warm", peers, 0, func(p *peer, prefix string) { p.handle(b, prefix, 1, 1, 1, 0) })
		for i, p := range peers {
			all := []*process{p.process}
			for len(all) < waiters {
				all = append(all, p.launch(b))
			}
			p.pass(b, all, "warm/wait/") // their connections
			for r := range rounds {
				passed[i].add(p.pass(b, all, fmt.Sprint("wait/", r, "/")))
			}
		}
	}
	reportPasses(os.Stdout, peers, passed, rounds)
}

// pass lets all processes take their turns at the same time, and checks that
// none overlap.
func (p *peer) pass(b *testing.B, all []*process, prefix string) handover {
	b.Helper()
	p.wire.take()
	for _, q := range all {
		for range turns {
			q.send(b, prefix+p.slug(), 1, 1, turnTime)
		}
	}
	var holds []locktest.Hold
	var asked, finished []float64 // by each
	for i, q := range all {
		var a peerAnswer
		for turn := range turns {
			a = q.one(b)
			if turn == 0 {
				asked = append(asked, a.Asked)
			}
			holds = append(holds, locktest.Hold{Holder: fmt.Sprint(q.name, " ", i), Start: timeOf(a.Began), End: timeOf(a.Ended)})
		}
		finished = append(finished, a.Asked+a.Took[0])
	}
	slices.SortFunc(holds, func(a, b locktest.Hold) int { return cmp.Compare(a.Start.UnixNano(), b.Start.UnixNano()) })
	for i := range holds {
		holds[i].Fence = int64(i) // only lambdalock has fences
	}
	if err := locktest.CheckHistory(holds); err != nil {
		b.Error(err)
	}
	began, last := slices.Min(asked), slices.Max(finished)
	return handover{timeOf(last).Sub(timeOf(began)), float64(p.wire.take()) / float64(len(holds)), (last - began) / (slices.Min(finished) - began)}
}

func timeOf(moment float64) time.Time { return time.Unix(0, int64(moment*1e6)) }

func (p *passes) add(h handover) {
	p.wall = append(p.wall, float64(h.wall)/float64(idealHandover))
	p.requests, p.fairness = append(p.requests, h.requests), append(p.fairness, h.fairness)
}

func reportPasses(w io.Writer, peers []*peer, passed []passes, rounds int) {
	fmt.Fprintf(w, "\n### Waiting\n\n%d processes take %d turns of %d ms each with one name. The ideal is one turn and two requests\n"+
		"after the other. %d rounds.\n\n", waiters, turns, turnTime.Milliseconds(), rounds)
	fmt.Fprintln(w, "| tool | of the ideal time | requests per turn | last to first that finishes |")
	fmt.Fprintln(w, "|---|---|---|---|")
	for i, p := range peers {
		fmt.Fprintf(w, "| %s | %s times | %s | %s |\n", p.tool.name, spread(passed[i].wall, 2), spread(passed[i].requests, 1), spread(passed[i].fairness, 1))
	}
}
