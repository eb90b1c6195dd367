package lock_test

import (
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
)

func TestJitter(t *testing.T) {
	t.Parallel()
	c := clock.From(t.Context())
	for _, d := range []time.Duration{-time.Second, 0, 1, time.Second} {
		if got := clock.Jitter(c, d); got < 0 || got >= max(d, 1) {
			t.Errorf("below %v: %v", d, got)
		}
	}
}
