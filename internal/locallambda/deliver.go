package locallambda

import (
	"context"
	"errors"
	"time"
)

// Async are the options of Deliver. The zero value is Lambda's behaviour.
type Async struct {
	RequestID string // zero: a new UUID
	// Scale divides the waits between attempts: 10 makes them ten times shorter.
	// Zero or less means 1.
	Scale float64
}

// Deliver invokes the function as an asynchronous event source such as S3 does:
// an attempt that does not succeed is followed by a second one a minute later
// and a third one two minutes after that, all with the same request id (see
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html).
// It returns the attempts in order. Environments that cannot be initialised
// count as a failed attempt. The list ends early, possibly empty or with an
// attempt that did not succeed, when the context is cancelled or the platform
// closed.
func (p *Platform) Deliver(ctx context.Context, payload []byte, opt Async) []Result {
	if opt.Scale <= 0 {
		opt.Scale = 1
	}
	if opt.RequestID == "" {
		opt.RequestID = newRequestID()
	}
	var attempts []Result
	for _, wait := range []time.Duration{0, time.Minute, 2 * time.Minute} {
		if !p.pause(ctx, time.Duration(float64(wait)/opt.Scale)) {
			break
		}
		result, err := p.attempt(ctx, Invocation{RequestID: opt.RequestID, Payload: payload})
		if err != nil {
			break
		}
		attempts = append(attempts, result)
		if result.Outcome == Succeeded {
			break
		}
	}
	return attempts
}

// attempt is Invoke with environments that fail to initialise as a result.
func (p *Platform) attempt(ctx context.Context, in Invocation) (Result, error) {
	asked := time.Now()
	result, err := p.Invoke(ctx, in)
	var failed *initError
	if !errors.As(err, &failed) {
		return result, err
	}
	result = Result{RequestID: in.RequestID, Environment: failed.env, Started: asked, Ended: time.Now()}
	end := failedWith("Runtime.ExitError", failed.Error())
	end.outcome = Crashed
	end.describe(&result)
	return result, nil
}

// pause waits; it returns false when the context or the platform ends first.
func (p *Platform) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	case <-p.closing:
		return false
	}
}
