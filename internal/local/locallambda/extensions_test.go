package locallambda

import (
	"slices"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// TestToldOfItsEnd: SIGTERM comes before SIGKILL exactly to a process that has
// registered an extension, also to a frozen one.
func TestToldOfItsEnd(t *testing.T) {
	for function, want := range map[string][]string{"told": {"goodbye"}, "untold": nil} {
		t.Run(function+" at close", func(t *testing.T) {
			var out printed
			cfg := config(function)
			cfg.Logs = out.add
			p, _ := start(t, cfg)
			expect.OK(t, p.Close())
			if got := out.all(); !slices.Equal(got, want) {
				t.Errorf("it printed %q, want %q", got, want)
			}
		})
		t.Run(function+" at the deadline", func(t *testing.T) {
			cfg := config(function)
			cfg.Timeout = 300 * time.Millisecond
			p, _ := start(t, cfg)
			g := newGate(t)
			result := background(t, p, Invocation{Payload: g.event()})
			g.next(t)
			r := receive(t, result, "result")
			if r.Outcome != TimedOut || !slices.Equal(r.Log, want) {
				t.Errorf("result %+v, want the log %q", r, want)
			}
		})
	}
}

func TestNoAnswerAfterTheEnd(t *testing.T) {
	proc := &process{p: &Platform{}, killed: true, running: map[string]*call{"a": {}}}
	if _, refused := proc.begin("a"); refused != wrongMoment {
		t.Errorf("a process that was told of its end may answer: %+v", refused)
	}
}
