package invocation_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
)

func TestLastStart(t *testing.T) { // F12
	for name, c := range map[string]struct{ remaining, want time.Duration }{
		"1 min": {time.Minute, time.Minute - time.Second - invocation.MinRun},
		"5 s":   {5 * time.Second, 5*time.Second - 500*time.Millisecond - invocation.MinRun},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.remaining)
				defer cancel()
				last, ok := invocation.LastStart(ctx, 0)
				if got := time.Until(last); !ok || got != c.want {
					t.Errorf("work may begin for %v, want %v", got, c.want)
				}
			})
		})
	}
	t.Run("chosen reserve", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			last, _ := invocation.LastStart(ctx, 20*time.Second)
			if got := time.Until(last); got != 40*time.Second-invocation.MinRun {
				t.Errorf("work may begin for %v", got)
			}
		})
	})
	t.Run("no deadline", func(t *testing.T) {
		if _, ok := invocation.LastStart(t.Context(), 0); ok {
			t.Error("a last start without a deadline")
		}
	})
}

func TestImplausibleDeadline(t *testing.T) {
	for name, deadline := range map[string]time.Time{"1970": time.Unix(0, 0), "two hours ago": time.Now().Add(-2 * time.Hour)} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithDeadline(t.Context(), deadline)
			defer cancel()
			if _, ok := invocation.LastStart(ctx, 0); ok {
				t.Error("LastStart believes it")
			}
			if err := invocation.WithBatch(ctx, &invocation.Batch{}).Err(); err != nil {
				t.Errorf("a batch under it: %v", err)
			}
		})
	}
}

func TestBatch(t *testing.T) {
	b := &invocation.Batch{}
	b.Add("a", "1")
	b.Add("a", "2")
	b.Add("b", "3")
	ctx := invocation.WithBatch(t.Context(), b)
	spelled := 0
	spell := func(e string) string { spelled++; return "<" + e + ">" }
	for range 3 { // each record asks
		if got := invocation.BatchOf(ctx).Stored("a", spell); len(got) != 2 || !got["<1>"] || !got["<2>"] {
			t.Errorf("the events of a are %v", got)
		}
	}
	if spelled != 2 {
		t.Errorf("%d events were spelled, want each once: a batch of 10,000 asks 10,000 times", spelled)
	}
	if got := invocation.BatchOf(ctx).Stored("c", spell); len(got) != 0 {
		t.Errorf("the events of c are %v", got)
	}
	if got := invocation.BatchOf(t.Context()).Stored("a", spell); len(got) != 0 {
		t.Errorf("without a batch: %v", got)
	}
}

// TestBatchIsSharedBetweenGoroutines shows that the records of a batch may ask
// for its events at the same time.
func TestBatchIsSharedBetweenGoroutines(t *testing.T) {
	t.Parallel()
	b := &invocation.Batch{}
	for i := range 1000 {
		b.Add(fmt.Sprint("name", i%4), fmt.Sprint("event", i))
	}
	var all sync.WaitGroup
	var spelled atomic.Int64
	for i := range 64 {
		all.Go(func() {
			set := b.Stored(fmt.Sprint("name", i%4), func(s string) string { spelled.Add(1); return "stored " + s })
			if len(set) != 250 || !set[fmt.Sprint("stored event", i%4)] {
				t.Errorf("%d events", len(set))
			}
		})
	}
	all.Wait()
	if n := spelled.Load(); n != 1000 {
		t.Errorf("1000 events were spelled %d times", n)
	}
}
