// Package patience is for tests of the engine that use real time, such as those
// over HTTP: its limits for requests are so long that no busy machine reaches
// them. Whatever such a limit does is tested in fake time.
package patience

import (
	"context"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
)

// factor makes a minute of the second that a request may take.
const factor = 60

// Context returns the context of the test, in which the engine is patient.
func Context(t testing.TB) context.Context {
	t.Helper()
	return With(t.Context())
}

// With is the same for a process that a test starts.
func With(ctx context.Context) context.Context { return clock.With(ctx, patient{clock.From(ctx)}) }

// patient is a clock by which deadlines come later.
type patient struct{ clock.Clock }

// WithDeadlineCause implements [clock.Clock].
func (p patient) WithDeadlineCause(ctx context.Context, deadline time.Time, cause error) (context.Context, context.CancelFunc) {
	now := p.Now()
	return p.Clock.WithDeadlineCause(ctx, now.Add(factor*deadline.Sub(now)), cause)
}
