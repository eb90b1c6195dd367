package integration_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/integration/servers"
)

// coldStart is a tool whose starts are measured.
type coldStart struct {
	name, runtime string
	binary        string // empty: the runtime's
	start         func() (wall, cpu time.Duration)
	wall, cpu     []float64 // ms
}

// BenchmarkColdStartPeers compares the time from the start of a process to its
// first handler, and the CPU time until its end. It prints the figures of
// docs/COMPARISON.md.
func BenchmarkColdStartPeers(b *testing.B) {
	s := peersServer(b)
	all := append(goStarts(b, s), otherStarts(b, s)...)
	rounds := 10
	for b.Loop() {
		for r := range rounds + 1 { // once to warm the page cache
			for i := range all {
				c := all[(i+r)%len(all)]
				if wall, cpu := c.start(); r > 0 {
					c.wall, c.cpu = append(c.wall, wall.Seconds()*1e3), append(c.cpu, cpu.Seconds()*1e3)
				}
			}
		}
	}
	reportColdStarts(b, os.Stdout, all, rounds)
}

// goStarts are those of small programs.
func goStarts(b *testing.B, s servers.Server) (all []*coldStart) {
	b.Helper()
	dir := b.TempDir()
	for _, t := range eventTools[:3] {
		p := &starter{name: t.name, binary: build(b, dir, t.id)}
		all = append(all, &coldStart{
			name: t.name, runtime: runtime.Version(), binary: p.binary,
			start: func() (wall, cpu time.Duration) { return p.start(b, s, dir) },
		})
	}
	return all
}

// otherStarts are those of the workers.
func otherStarts(b *testing.B, s servers.Server) (all []*coldStart) {
	b.Helper()
	for _, p := range startPeers(b, s, time.Minute, eventTools[3:]) {
		p.endpoint = s.Endpoint
		all = append(all, &coldStart{
			name: p.tool.name, runtime: p.runtime,
			start: func() (wall, cpu time.Duration) {
				began := moment()
				q := p.launch(b)
				q.send(b, "cold/"+rand.Text()+"/", 1, 1, 0)
				a := q.one(b)
				return time.Duration((a.Began - began) * 1e6), q.end(b)
			},
		})
	}
	return all
}

func reportColdStarts(b *testing.B, w io.Writer, all []*coldStart, rounds int) {
	b.Helper()
	fmt.Fprintf(w, "\n### Cold starts\n\nFrom the start of a process to its first handler, without a delay of requests; "+
		"CPU until its end.\n%d starts of each.\n\n", rounds)
	fmt.Fprintln(w, "| tool | runtime | ms until its first handler | CPU ms | binary |")
	fmt.Fprintln(w, "|---|---|---|---|---|")
	for _, c := range all {
		digits, binary := 0, "–"
		if c.binary != "" {
			digits, binary = 1, fmt.Sprintf("%.1f MB", float64(size(b, c.binary))/1e6)
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", c.name, c.runtime, spread(c.wall, digits), spread(c.cpu, digits), binary)
	}
}
