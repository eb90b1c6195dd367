package locallambda

import (
	"context"
	"errors"
	"time"
)

// Async are the options of Deliver. The zero value is Lambda's behaviour towards
// asynchronous sources.
type Async struct {
	RequestID string // zero: a new UUID
	// Waits come before the second attempt and each further one. Nil: a minute
	// and two minutes. Empty: there is no second attempt.
	Waits []time.Duration
	// Scale divides the waits between attempts: 10 makes them ten times shorter.
	// Zero or less means 1.
	Scale float64
	// Again returns what of an attempt has to be delivered again, nil if nothing
	// has; each attempt then has a request id of its own. That is how queues and
	// streams deliver. Nil: all of it, under the same id, unless it succeeded.
	Again func(Result) []byte
	// TooEarly reports whether an attempt failed only because it came early, such
	// as one that was refused because of a lease that a real wait would have
	// outlasted. Such an attempt does not count while the real wait is not over:
	// it is repeated, after twice the wait. It is asked of each attempt, before
	// Observe and Again. Nil: every attempt counts.
	TooEarly func(Result) bool
	// Observe receives each attempt when it ends, and whether it counts. Nil
	// discards them.
	Observe func(r Result, counts bool)
	// Queued is called when the first attempt has its place in the line for an
	// environment. Nil: it is not.
	Queued func()
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
	opt.complete()
	in := Invocation{RequestID: opt.RequestID, Payload: payload, Queued: opt.Queued}
	var attempts []Result
	for _, d := range append([]time.Duration{0}, opt.Waits...) {
		w := wait{real: d, next: max(time.Duration(float64(d)/opt.Scale), min(d, time.Millisecond)), from: time.Now()}
		for counts := false; !counts; {
			if !p.pause(ctx, w.step(time.Now())) {
				return attempts
			}
			due := w.due(time.Now())
			result, err := p.attempt(ctx, in)
			if err != nil {
				return attempts
			}
			early := opt.TooEarly(result)
			counts = due || !early
			attempts = append(attempts, result)
			opt.Observe(result, counts)
			if !opt.next(&in, result, counts) {
				return attempts
			}
		}
	}
	return attempts
}

func (opt *Async) complete() {
	if opt.Scale <= 0 {
		opt.Scale = 1
	}
	if opt.RequestID == "" {
		opt.RequestID = newRequestID()
	}
	if opt.Waits == nil {
		opt.Waits = []time.Duration{time.Minute, 2 * time.Minute}
	}
	if opt.TooEarly == nil {
		opt.TooEarly = func(Result) bool { return false }
	}
	if opt.Observe == nil {
		opt.Observe = func(Result, bool) {}
	}
}

// next prepares the attempt after one with that result; it returns false when
// there is none.
func (opt *Async) next(in *Invocation, r Result, counts bool) bool {
	in.Queued = nil
	if opt.Again == nil {
		return !counts || r.Outcome != Succeeded
	}
	payload := opt.Again(r)
	if payload == nil {
		return !counts
	}
	in.RequestID, in.Payload = newRequestID(), payload
	return true
}

// longestStep keeps a shortened wait from lasting much longer than what it waits for.
const longestStep = 5 * time.Second

// wait is the time between two attempts, which may be cut short.
type wait struct {
	real, next time.Duration
	from       time.Time
}

// due reports whether the real wait is over.
func (w *wait) due(now time.Time) bool { return now.Sub(w.from) >= w.real }

// step returns how long to wait now, each time twice as long as before up to
// longestStep, but never beyond the real wait.
func (w *wait) step(now time.Time) time.Duration {
	d := min(w.next, w.real-now.Sub(w.from))
	w.next = max(w.next, min(2*w.next, longestStep))
	return d
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
