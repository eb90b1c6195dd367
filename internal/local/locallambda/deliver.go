package locallambda

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/eventsource"
)

// Redelivery says what Deliver does after an attempt. The zero value is what
// Lambda does for asynchronous invocations.
type Redelivery struct {
	// Scale divides the waits: 10 makes them ten times shorter. Zero means 1.
	Scale float64
	// TooEarly reports whether an attempt failed only because its wait was
	// shortened, for example because of a lease that the real wait would have
	// outlasted. Such an attempt does not count: it is repeated, each time after
	// twice the wait, until the real wait is over. Nil: every attempt counts.
	TooEarly func(Result) bool
}

// Deliver invokes the function as an asynchronous event source such as S3 does:
// all attempts have the same request id. It returns the attempts in order. An
// environment that cannot be initialised is a failed attempt. The list ends
// early, possibly empty or with an attempt that did not succeed, if the context
// is cancelled or the platform closed.
func (p *Platform) Deliver(ctx context.Context, payload []byte, opt Redelivery) []Result {
	in := Invocation{RequestID: newRequestID(), Payload: payload}
	var attempts []Result
	event := eventsource.NewAsync(in)
	event.Scale = opt.Scale
	_ = event.Run(ctx, func(_ []Invocation, wait *eventsource.Wait) (int, bool, error) {
		due := wait.Due(time.Now())
		r, err := p.Attempt(ctx, in)
		if err != nil {
			return 0, false, err
		}
		attempts = append(attempts, r)
		counts := due || opt.TooEarly == nil || !opt.TooEarly(r)
		if counts && r.Outcome == Succeeded {
			return 1, true, nil
		}
		return 0, counts, nil
	})
	return attempts
}

// Attempt calls Invoke, and returns a crash if the environments cannot be
// initialised.
func (p *Platform) Attempt(ctx context.Context, in Invocation) (Result, error) {
	in.RequestID = cmp.Or(in.RequestID, newRequestID()) // also that of a crash
	asked := time.Now()
	result, err := p.Invoke(ctx, in)
	if failed := (*initError)(nil); errors.As(err, &failed) {
		return Result{
			RequestID: in.RequestID, Environment: failed.env, Started: asked, Ended: time.Now(),
			Outcome: Crashed, ErrorType: "Runtime.ExitError", ErrorMessage: failed.Error(),
		}, nil
	}
	return result, err
}

// pause waits. It reports false if the context or the platform ends first.
func (p *Platform) pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
	case <-p.closing:
	}
	return false
}
