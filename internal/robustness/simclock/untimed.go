package simclock

import (
	"context"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
)

// Untimed returns a context by whose clock no time limit is ever reached. It is
// for tests that send requests to a server, which answers late when the machine
// is busy.
func Untimed(ctx context.Context) context.Context {
	return clock.With(ctx, untimed{clock.From(ctx)})
}

type untimed struct{ clock.Clock }

// AfterFunc never calls f.
func (untimed) AfterFunc(time.Duration, func()) clock.Timer { return unset{} }

// WithDeadlineCause sets no deadline.
func (untimed) WithDeadlineCause(ctx context.Context, _ time.Time, _ error) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// unset is a timer that is not running.
type unset struct{}

func (unset) Stop() bool               { return false }
func (unset) Reset(time.Duration) bool { return false }
