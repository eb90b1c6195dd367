package locallambda

import (
	"context"
	"slices"
	"testing"
	"time"
)

// TestEarlyRetriesDoNotCount: three attempts that were refused while the waits
// are shortened say nothing about three attempts in a real minute's distance.
func TestEarlyRetriesDoNotCount(t *testing.T) {
	p, _ := start(t, config("gated"))
	g := newGate(t)
	attempts := make(chan []Result, 1)
	var seen []bool
	go func() {
		attempts <- p.Deliver(context.Background(), g.event(), Redelivery{
			Scale: 1e5, TooEarly: func(r Result) bool { return r.ErrorMessage == "no luck" },
			Observe: func(_ Result, counts bool) { seen = append(seen, counts) },
		})
	}()
	const early = 5
	for range early {
		g.next(t).tell(t, "fail")
	}
	g.next(t).tell(t, "return")
	got := receive(t, attempts, "attempts")
	if len(got) != early+1 || got[early].Outcome != Succeeded {
		t.Errorf("attempts %+v", got)
	}
	if want := []bool{true, false, false, false, false, true}; !slices.Equal(seen, want) {
		t.Errorf("attempts that count: %v, want %v", seen, want)
	}
}

// TestRetriesCountWhenTheyAreDue: after the real wait nothing is too early.
func TestRetriesCountWhenTheyAreDue(t *testing.T) {
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

// TestAgain: a queue delivers again what failed, as an invocation of its own.
func TestAgain(t *testing.T) {
	p, _ := start(t, config("chatty"))
	queued := 0
	got := p.Deliver(t.Context(), []byte(`"three"`), Redelivery{
		Waits: []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond},
		Again: func(r Result) []byte {
			return map[string][]byte{"three begun": []byte(`"two"`), "two begun": []byte(`"one"`)}[r.Log[0]]
		},
		Queued: func() { queued++ },
	})
	if len(got) != 3 || got[2].Log[0] != "one begun" || got[0].RequestID == got[1].RequestID || queued != 1 {
		t.Errorf("attempts %+v, queued %d times", got, queued)
	}
}

func TestNoSecondAttempt(t *testing.T) {
	p, _ := start(t, config("chatty"))
	if got := p.Deliver(t.Context(), []byte(`"exit"`), Redelivery{Waits: []time.Duration{}}); len(got) != 1 {
		t.Errorf("attempts %+v", got)
	}
}
