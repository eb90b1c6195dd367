package eventsource

import (
	"slices"
	"testing"
	"time"
)

// TestWait: after the real wait nothing is too early.
func TestWait(t *testing.T) {
	t.Parallel()
	last := time.Now()
	w := NewWait(20*time.Second, 20, last)
	var waits []time.Duration
	for !w.Due(last) {
		waits = append(waits, w.Step(last))
		last = last.Add(waits[len(waits)-1])
	}
	want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second, 3 * time.Second}
	if !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
}
