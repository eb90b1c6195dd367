package locallambda

import (
	"errors"
	"strings"
	"testing"
)

// TestFreshVariables: each process gets the variables of its own start, so that
// credentials that expire can be replaced.
func TestFreshVariables(t *testing.T) {
	cfg := config("gated")
	var given []string
	cfg.Credentials = func() ([]string, error) {
		given = append(given, "AWS_SESSION_TOKEN="+strings.Repeat("x", len(given)+1))
		return given[len(given)-1:], nil
	}
	p, seen := start(t, cfg)
	g := newGate(t)
	for range 2 {
		if err := p.Kill(1); err != nil {
			t.Fatal(err)
		}
		seen.await(t, eventStopped)
		result := background(t, p, Invocation{Payload: g.event()})
		g.next(t).tell(t, "return")
		receive(t, result, "result")
	}
	if len(given) != 3 {
		t.Errorf("asked %d times for 3 processes", len(given))
	}
}

func TestFreshVariablesFail(t *testing.T) {
	cfg := config("gated")
	cause := errors.New("the SSO session has expired")
	cfg.Credentials = func() ([]string, error) { return nil, cause }
	p, err := Start(t.Context(), cfg)
	if err == nil {
		_ = p.Close()
	}
	if !errors.Is(err, cause) {
		t.Errorf("%v, want the cause %v", err, cause)
	}
}
