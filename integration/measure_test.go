package integration_test

import (
	"runtime"
	"runtime/pprof"
	"slices"
	"testing"
	"time"
)

// contestant is one of several ways to do the same, measured side by side.
type contestant struct {
	name string
	wire *wire // counts its requests; nil: it sends none
	run  func(i int) error

	latency []time.Duration
	blocks  []block
}

// block is a stretch of runs of one contestant. Comparing blocks of one round
// cancels whatever else the machine is doing at the time.
type block struct {
	runs     int
	p50      time.Duration
	mean     time.Duration
	cpu      time.Duration
	allocs   uint64
	bytes    uint64
	requests int64
}

// round runs each contestant n times, in an order that turns with the round.
func round(b *testing.B, all []*contestant, number, n int) {
	for i := range all {
		all[(i+number)%len(all)].block(b, number*n, n)
	}
}

func (c *contestant) block(b *testing.B, first, n int) {
	took := make([]time.Duration, 0, n)
	// A CPU profile can be split with -tagfocus; connections inherit the label.
	pprof.SetGoroutineLabels(pprof.WithLabels(b.Context(), pprof.Labels("contestant", c.name)))
	defer pprof.SetGoroutineLabels(b.Context())
	// A collection that the block before made necessary is not this one's cost.
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if c.wire != nil {
		c.wire.take()
	}
	cpu, began := cpuTime(), time.Now()
	for i := range n {
		start := time.Now()
		if err := c.run(first + i); err != nil {
			b.Fatalf("%s: %v", c.name, err)
		}
		took = append(took, time.Since(start))
	}
	wall := time.Since(began)
	cpu = cpuTime() - cpu
	runtime.ReadMemStats(&after)
	bl := block{runs: n, mean: wall / time.Duration(n), cpu: cpu, allocs: after.Mallocs - before.Mallocs, bytes: after.TotalAlloc - before.TotalAlloc}
	if c.wire != nil {
		bl.requests = c.wire.take()
	}
	c.latency = append(c.latency, took...)
	slices.Sort(took)
	bl.p50 = quantile(took, 0.5)
	c.blocks = append(c.blocks, bl)
}

// quantile of sorted values.
func quantile[T any](sorted []T, q float64) T {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func median[T int64 | float64 | time.Duration](values []T) T {
	s := slices.Clone(values)
	slices.Sort(s)
	return quantile(s, 0.5)
}

func (c *contestant) quantile(q float64) time.Duration {
	s := slices.Clone(c.latency)
	slices.Sort(s)
	return quantile(s, q)
}

// perRun adds a quantity over all blocks and divides it by the runs.
func (c *contestant) perRun(of func(block) float64) float64 {
	sum, runs := 0.0, 0
	for _, bl := range c.blocks {
		sum += of(bl)
		runs += bl.runs
	}
	return sum / float64(runs)
}

// ratio is the median over all rounds of c's quantity divided by base's.
func (c *contestant) ratio(base *contestant, of func(block) float64) float64 {
	r := make([]float64, 0, len(c.blocks))
	for i, bl := range c.blocks {
		if d := of(base.blocks[i]); d > 0 {
			r = append(r, of(bl)/d)
		}
	}
	if len(r) == 0 {
		return 0
	}
	return median(r)
}

func blockP50(b block) float64      { return float64(b.p50) }
func blockMean(b block) float64     { return float64(b.mean) }
func blockCPU(b block) float64      { return float64(b.cpu) }
func blockAllocs(b block) float64   { return float64(b.allocs) }
func blockBytes(b block) float64    { return float64(b.bytes) }
func blockRequests(b block) float64 { return float64(b.requests) }

// middle is the median over all rounds.
func (c *contestant) middle(of func(block) float64) float64 {
	v := make([]float64, len(c.blocks))
	for i, bl := range c.blocks {
		v[i] = of(bl)
	}
	return median(v)
}
