package locallambda

import (
	"context"
	"errors"
	"time"
)

// Redelivery says what Deliver does after an attempt. The zero value is what
// Lambda does for asynchronous invocations.
type Redelivery struct {
	// Waits come before the second attempt and each further one. Nil: a minute
	// and two minutes. Empty: there is no second attempt.
	Waits []time.Duration
	// Scale divides the waits: 10 makes them ten times shorter. Zero means 1.
	Scale float64
	// Again returns the payload to deliver again after an attempt, as queues and
	// streams do, each time with a new request id; nil: nothing. If Again is nil,
	// an attempt that did not succeed is repeated with the same request id.
	Again func(Result) []byte
	// TooEarly reports whether an attempt failed only because its wait was
	// shortened, for example because of a lease that the real wait would have
	// outlasted. Such an attempt does not count: it is repeated, each time after
	// twice the wait, until the real wait is over. TooEarly is called for each
	// attempt, before Observe and Again. Nil: every attempt counts.
	TooEarly func(Result) bool
	// Observe receives each attempt when it ends, and whether it counts. Nil
	// discards them.
	Observe func(r Result, counts bool)
	// Queued is called when the first attempt has its place in the queue for an
	// environment. Nil: it is not.
	Queued func()
}

// Deliver invokes the function as an asynchronous event source such as S3 does:
// an attempt that does not succeed is followed by a second one a minute later
// and a third one two minutes after that, all with the same request id (see
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html).
// It returns the attempts in order. An environment that cannot be initialised
// is a failed attempt. The list ends early, possibly empty or with an attempt
// that did not succeed, if the context is cancelled or the platform closed.
func (p *Platform) Deliver(ctx context.Context, payload []byte, opt Redelivery) []Result {
	opt.complete()
	in := Invocation{RequestID: newRequestID(), Payload: payload, Queued: opt.Queued}
	var attempts []Result
	for _, real := range append([]time.Duration{0}, opt.Waits...) {
		w := NewWait(real, opt.Scale, time.Now())
		for counts := false; !counts; {
			if !p.pause(ctx, w.Step(time.Now())) {
				return attempts
			}
			due := w.Due(time.Now())
			result, err := p.Attempt(ctx, in)
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

func (opt *Redelivery) complete() {
	if opt.Scale == 0 {
		opt.Scale = 1
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

// next prepares the attempt after one with that result. It reports false if
// there is none.
func (opt *Redelivery) next(in *Invocation, r Result, counts bool) bool {
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

// longestStep keeps a shortened wait from lasting much longer than what it
// waits for.
const longestStep = 5 * time.Second

// Wait is the time between two attempts, which may be cut short. NewWait
// returns one.
type Wait struct {
	real, next time.Duration
	from       time.Time
}

// NewWait returns a wait that lasts for real from that time on, and is cut
// short: the first step is scale times shorter, but not below a millisecond.
func NewWait(real time.Duration, scale float64, from time.Time) *Wait {
	return &Wait{real: real, next: max(time.Duration(float64(real)/scale), min(real, time.Millisecond)), from: from}
}

// Due reports whether the real wait is over.
func (w *Wait) Due(now time.Time) bool { return now.Sub(w.from) >= w.real }

// Step returns how long to wait now, each time twice as long as before up to 5
// seconds, but never beyond the real wait.
func (w *Wait) Step(now time.Time) time.Duration {
	d := min(w.next, w.real-now.Sub(w.from))
	w.next = max(w.next, min(2*w.next, longestStep))
	return d
}

// Attempt calls Invoke, and returns a crash if the environments cannot be
// initialised.
func (p *Platform) Attempt(ctx context.Context, in Invocation) (Result, error) {
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
