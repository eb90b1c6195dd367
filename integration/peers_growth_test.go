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

// growth are the sizes of batches. Each is measured ten times, but not begun
// again after growthTime; nor is the next size begun if one batch takes longer.
var growth = []int{1, 10, 100, 1000, 10_000}

const (
	growthRounds = 10
	growthTime   = 3 * time.Second
)

// BenchmarkBatchPeers compares batches that grow. It prints the table of
// docs/BENCHMARKS.md.
func BenchmarkBatchPeers(b *testing.B) {
	peers := startPeers(b, peersServer(b), time.Minute, batchTools)
	grown := make([][]*contestant, len(peers)) // of each tool, for each size
	for b.Loop() {
		inRounds("warm", peers, 0, func(p *peer, prefix string) { p.handle(b, prefix, 1, 50, 50, batchHandler) })
		for i, p := range peers {
			grown[i] = p.grow(b)
		}
	}
	reportGrowth(os.Stdout, peers, grown)
}

// grow handles batches of all sizes.
func (p *peer) grow(b *testing.B) (grown []*contestant) {
	b.Helper()
	for _, size := range growth {
		c := &contestant{}
		for began := time.Now(); len(c.blocks) < growthRounds && time.Since(began) < growthTime; {
			prefix := fmt.Sprint("batch/", size, "/", len(c.blocks), "/", p.slug())
			c.blocks = append(c.blocks, p.handle(b, prefix, 1, size, size, batchHandler))
		}
		grown = append(grown, c)
		if c.middle(blockP50) > float64(growthTime) {
			break
		}
	}
	return grown
}

func reportGrowth(w io.Writer, peers []*peer, grown [][]*contestant) {
	fmt.Fprintf(w, "\n### Batches\n\nMessages of a queue, each with a name of its own, and a handler of %v. Up to %d batches of a size,\n"+
		"but none is begun after %v; nor is a larger one if one takes longer.\n\n", batchHandler, growthRounds, growthTime)
	fmt.Fprint(w, "| tool | requests per message | a message takes | 1 at a time | batches of 10 | 100 | 1,000 | 10,000 |\n|---|---|---|---|---|---|---|---|\n")
	for i, p := range peers {
		requests := make([]float64, len(grown[i]))
		for j, c := range grown[i] {
			requests[j] = c.perRun(blockRequests) / float64(growth[j])
		}
		reportMessage(w, fmt.Sprintf("%s | %s | ms", p.tool.name, spread(requests, 1)), grown[i], blockP50)
		reportMessage(w, " | | CPU ms", grown[i], blockCPU)
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
