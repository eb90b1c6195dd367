package integration_test

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// batchTools handle a batch of messages. They get each batch once.
var batchTools = []tool{
	{"Go", "raw_batch", "raw SDK for Go, 16 at a time", false},
	{"Go", "lambdalock_batch", "lambdalock, 16 at a time", false},
	{"Go", "dynamolock", "dynamolock 2.0.3, one by one", false},
	{"Python", "dynamo_dlm", "dynamo-dlm 2.1.0, one by one", false},
	{"Python", "dyndbmutex", "dyndbmutex 0.4.0, one by one", false},
	{"Python", "powertools_batch", "Powertools for Python 3.37.0", false},
	{"Node.js", "powertools_batch", "Powertools for TypeScript 2.35.0", false},
}

// growth are the sizes of batches. Tools are measured in turn, ten times for
// each size; but one whose batches have taken growthTime has no further one of
// that size, and one for which a single batch takes longer has no larger one.
var growth = []int{1, 10, 100, 1000, 10_000}

const (
	growthRounds = 10
	growthTime   = 4 * time.Second
)

// BenchmarkBatchPeers compares batches that grow. It prints the figures of
// docs/COMPARISON.md.
func BenchmarkBatchPeers(b *testing.B) {
	peers := startPeers(b, peersServer(b), time.Minute, batchTools)
	var grown [][]*contestant // of each tool, for each size
	for b.Loop() {
		inRounds("warm", peers, 0, func(p *peer, prefix string) { p.handle(b, prefix, 1, 50, 50, batchHandler) })
		grown = make([][]*contestant, len(peers))
		for i := range growth {
			for round := range growthRounds {
				for j := range peers {
					n := (j + round) % len(peers)
					grown[n] = peers[n].grow(b, grown[n], i, round)
				}
			}
		}
	}
	reportGrowth(os.Stdout, peers, grown)
}

// grow handles a batch of the size, if it is the tool's turn to.
func (p *peer) grow(b *testing.B, grown []*contestant, i, round int) []*contestant {
	b.Helper()
	if len(grown) < i || i > 0 && grown[i-1].middle(blockP50) > float64(growthTime) {
		return grown
	}
	if len(grown) == i {
		grown = append(grown, &contestant{})
	}
	var spent time.Duration
	for _, bl := range grown[i].blocks {
		spent += bl.p50
	}
	if spent < growthTime {
		size := growth[i]
		prefix := fmt.Sprint("batch/", size, "/", round, "/", p.slug())
		grown[i].blocks = append(grown[i].blocks, p.handle(b, prefix, 1, size, size, batchHandler))
	}
	return grown
}

func reportGrowth(w io.Writer, peers []*peer, grown [][]*contestant) {
	fmt.Fprintf(w, "\n### Batches\n\nMessages of a queue, each with a name of its own, and a handler of %d ms. %d batches of each size\n"+
		"for each tool in turn, or fewer if they take %.0f s; no larger ones if a single one takes longer.\n\n",
		batchHandler.Milliseconds(), growthRounds, growthTime.Seconds())
	fmt.Fprint(w, "| tool | requests per message | a message takes | 1 at a time | batches of 10 | 100 | 1,000 | 10,000 |\n|---|---|---|---|---|---|---|---|\n")
	for i, p := range peers {
		requests := make([]float64, len(grown[i]))
		for j, c := range grown[i] {
			requests[j] = c.perRun(blockRequests) / float64(growth[j])
		}
		reportMessage(w, fmt.Sprintf("%s | %s | ms", p.tool.name, spread(requests, 1)), grown[i], blockP50)
		reportMessage(w, "| | CPU ms", grown[i], blockCPU)
	}
}

// reportMessage prints what a message takes in batches of each size.
func reportMessage(w io.Writer, head string, grown []*contestant, of func(block) float64) {
	cells := make([]string, len(growth))
	for i, size := range growth {
		cells[i] = "–"
		if i < len(grown) {
			cells[i] = grown[i].spread(of, 1e6*float64(size), 2)
		}
	}
	fmt.Fprintf(w, "| %s | %s |\n", head, strings.Join(cells, " | "))
}
