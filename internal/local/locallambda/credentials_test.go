package locallambda

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// TestCredentials: each process gets the credentials of its own start, so that
// those that expire can be replaced.
func TestCredentials(t *testing.T) {
	cfg := config("variables")
	cfg.Env = append(cfg.Env, "AWS_SESSION_TOKEN=overridden")
	var given []string
	cfg.Credentials = func() ([]string, error) {
		given = append(given, "AWS_SESSION_TOKEN="+strings.Repeat("x", len(given)+1))
		return given[len(given)-1:], nil
	}
	p, seen := start(t, cfg)
	for range 2 {
		expect.Must(t, p.Kill(1))
		seen.await(t, eventStopped)
		if got := variablesOf(t, p); !slices.Contains(got, given[len(given)-1]) {
			t.Errorf("no %s in %q", given[len(given)-1], got)
		}
	}
	if len(given) != 3 {
		t.Errorf("asked %d times for 3 processes", len(given))
	}
}

func TestCredentialsFail(t *testing.T) {
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
