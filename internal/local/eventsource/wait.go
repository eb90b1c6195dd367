package eventsource

import (
	"context"
	"time"
)

// longestStep keeps a shortened wait from lasting much longer than what it
// waits for.
const longestStep = 5 * time.Second

// Wait is the time between two deliveries, which may be cut short. A nil Wait
// is over.
type Wait struct {
	Real time.Duration // not cut short

	next time.Duration
	from time.Time
}

// NewWait returns a wait that lasts for real from that time on, and is cut
// short: the first step is scale times shorter, but not below a millisecond. A
// scale of zero means 1.
func NewWait(real time.Duration, scale float64, from time.Time) *Wait {
	if scale == 0 {
		scale = 1
	}
	return &Wait{Real: real, next: max(time.Duration(float64(real)/scale), min(real, time.Millisecond)), from: from}
}

// Due reports whether the real wait is over.
func (w *Wait) Due(now time.Time) bool { return w == nil || now.Sub(w.from) >= w.Real }

// Step returns how long to wait now, each time twice as long as before up to 5
// seconds, but never beyond the real wait.
func (w *Wait) Step(now time.Time) time.Duration {
	d := min(w.next, w.Real-now.Sub(w.from))
	w.next = max(w.next, min(2*w.next, longestStep))
	return d
}

// Sleep waits for a step. It reports false if the context ends first.
func (w *Wait) Sleep(ctx context.Context) bool {
	if w == nil {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(w.Step(time.Now())):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
