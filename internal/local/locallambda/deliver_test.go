package locallambda

import (
	"context"
	"testing"
)

// TestEarlyRetriesDoNotCount: three attempts that were refused while the waits
// are shortened say nothing about three attempts in a real minute's distance.
func TestEarlyRetriesDoNotCount(t *testing.T) {
	p, _ := start(t, config("gated"))
	g := newGate(t)
	attempts := make(chan []Result, 1)
	go func() {
		attempts <- p.Deliver(context.Background(), g.event(), Redelivery{
			Scale: 1e5, TooEarly: func(r Result) bool { return r.ErrorMessage == "no luck" },
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
}
