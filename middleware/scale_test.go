package middleware_test

import (
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/eventsource"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestAtScale shows what becomes of a minute with 100,000 events a second, over
// 1,000,000 names, if the table takes less: nothing is lost, no handlers of one
// name overlap, and an event whose claim is throttled begins later.
//
// It plays a part of that load, with the same part of the table, of the queue's
// messages in flight and of the invocations. LAMBDALOCK_DEPTH=long plays the
// figures of BENCHMARKS.md, of two parts, to show that they are about the same.
func TestAtScale(t *testing.T) { // F8, F55, F63
	t.Parallel()
	sizes, lasts := []float64{1. / 400}, 10*time.Second
	if os.Getenv("LAMBDALOCK_DEPTH") == "long" {
		sizes, lasts = []float64{1. / 200, 1. / 50}, time.Minute
	}
	waits := middleware.OnHeld(middleware.Wait(time.Second))
	const growth = 30 * time.Minute
	for _, size := range sizes {
		for _, c := range []struct {
			name string
			*surge
			dies bool // a lasting surge moves messages to the dead-letter queue
		}{
			{name: "new", surge: &surge{throughput: 4000, splits: growth}},
			{name: "new, 200 invocations at most", surge: &surge{throughput: 4000, splits: growth, atATime: 200}},
			{name: "new, batches of 100", surge: &surge{throughput: 4000, splits: growth, load: load{batch: 100, options: []middleware.Option{middleware.Concurrency(100)}}}, dies: true},
			{name: "40,000 writes", surge: &surge{throughput: 40_000}},
			{name: "100,000 writes", surge: &surge{throughput: 100_000}},
			{name: "200,000 writes", surge: &surge{throughput: 200_000}},
			{name: "100,000 writes, ready", surge: &surge{throughput: 100_000, atATime: 1000, ready: true}},
			{name: "200,000 writes, ready", surge: &surge{throughput: 200_000, atATime: 1000, ready: true}},
			{name: "200,000 writes, ready, OnHeld(Wait(1 s))", surge: &surge{throughput: 200_000, atATime: 1000, ready: true, load: load{options: []middleware.Option{waits}}}},
		} {
			t.Run(fmt.Sprintf("%s, 1 of %v", c.name, 1/size), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := c.surge
					s.size, s.lasts, s.timeout, s.work, s.batch = size, lasts, 30*time.Second, 50*time.Millisecond, max(s.batch, 10)
					s.run(t)
					t.Logf("1 of %v: %s", 1/size, s.line(c.name))
					s.wantAll(t, c.dies)
				})
			})
		}
	}
}

// wantAll checks that each message ran once, or did not run and is in the
// dead-letter queue.
func (s *surge) wantAll(t *testing.T, mayDie bool) {
	t.Helper()
	if s.overlaps > 0 {
		t.Errorf("%d handlers overlapped", s.overlaps)
	}
	if s.dead != s.untried || s.dead > 0 && !mayDie {
		t.Errorf("%d messages are in the dead-letter queue, %d of them untried", s.dead, s.untried)
	}
	ran := 0
	for id, m := range s.letters {
		ran += m.runs
		if m.runs > 1 {
			t.Errorf("message %s ran %d times", id, m.runs)
		}
	}
	if ran != len(s.completed) || ran+s.dead != s.messages {
		t.Errorf("of %d messages %d ran and %d were completed", s.messages, ran, len(s.completed))
	}
	if ideal := time.Duration(2 * eventsPerSecond / s.throughput * float64(s.lasts)); s.drained() > max(s.lasts, ideal)*3/2+2*eventsource.VisibilityTimeouts*s.timeout {
		t.Errorf("drained after %v, of which the table needs %v", s.drained(), ideal)
	}
	if sent, accepted := s.table.Requests(); sent > 4*s.messages || accepted == sent && s.throughput == 4000 {
		t.Errorf("%d requests for %d messages, of which the table took %d", sent, s.messages, accepted)
	}
}
