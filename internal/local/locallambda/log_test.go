package locallambda

import (
	"slices"
	"testing"
)

// TestResultHasTheLog: what a function printed before it answered is known when
// Invoke returns, and belongs to that invocation alone.
func TestResultHasTheLog(t *testing.T) {
	p, _ := start(t, config("chatty"))
	for range 50 {
		for _, word := range []string{"one", "two"} {
			r := invoke(t, p, Invocation{Payload: []byte(`"` + word + `"`)})
			if want := []string{word + " begun", word + " done"}; !slices.Equal(r.Log, want) {
				t.Fatalf("log %q, want %q", r.Log, want)
			}
		}
	}
	crash := invoke(t, p, Invocation{Payload: []byte(`"exit"`)})
	// What is measured for coverage says so when it exits.
	if crash.Outcome != Crashed || len(crash.Log) == 0 || crash.Log[0] != "exit begun" || slices.Contains(crash.Log, "exit done") {
		t.Errorf("log of a crash: %q (%s)", crash.Log, crash.Outcome)
	}
}

// TestManyLinesInTheLog: a pipe holds less than that.
func TestManyLinesInTheLog(t *testing.T) {
	p, _ := start(t, config("chatty"))
	r := invoke(t, p, Invocation{Payload: []byte(`"flood"`)})
	if len(r.Log) != MaxLog || r.Log[0] != "flood begun" {
		t.Errorf("%d lines, the first %q", len(r.Log), r.Log[0])
	}
}
