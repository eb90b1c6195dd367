package locallambda

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Outcome says how an invocation ended.
type Outcome string

// The ways in which an invocation ends.
const (
	Succeeded Outcome = "succeeded" // the function returned a response
	Failed    Outcome = "failed"    // the function reported an error, or its response was refused
	TimedOut  Outcome = "timed out" // the deadline passed first
	Crashed   Outcome = "crashed"   // the process ended first
)

// Invocation is one event for the function.
type Invocation struct {
	RequestID string // empty: a new UUID
	Payload   []byte // the event, normally JSON; nil means {}

	// Stream receives the response as it arrives, piece by piece, and lifts the
	// 6 MB limit as invoking with response streaming does. It is not written to
	// after Invoke has returned, nor after a write has failed. Nil: the response
	// is only collected.
	Stream io.Writer

	// Queued is called, while the platform is locked, when the invocation gets its
	// place in the queue or is refused one. Nil: it is not.
	Queued func()
}

// Result is what became of an invocation.
type Result struct {
	RequestID   string
	Environment int // the number of the environment that handled it, from 1
	Outcome     Outcome
	// Payload is the response, or after a function error the error document, in
	// JSON with errorType and errorMessage.
	Payload     []byte
	ContentType string // of the payload

	ErrorType    string          // such as Sandbox.Timedout; empty if it succeeded
	ErrorMessage string          // empty if it succeeded
	StackTrace   json.RawMessage // as the function reported it; nil: none

	// Log is what the environment printed from the delivery to the answer, at most
	// its first 10,000 lines. It is nil with Concurrency above 1, because then it
	// is unknown which invocation printed a line.
	Log []string
	// LogStream is the name of the log stream of the process that handled it.
	LogStream string
	// TraceID is the tracing header that the function got, which it sends on with
	// its requests to AWS.
	TraceID string

	Started time.Time // when it was delivered
	Ended   time.Time // when its response was complete, or its failure certain
}

// call is an invocation under way. Platform.mu guards the fields between the
// blank lines.
type call struct {
	id   string
	in   Invocation
	done chan struct{} // closed when result or err is final

	result   Result // without an Outcome until the call has ended
	err      error
	returned bool // done is closed; after an error the call may still be running
	posting  bool // a response is being received
	answered bool // the environment has posted a complete response or error
	expired  bool // the deadline passed before the environment was free again
	deadline time.Time
	timer    *time.Timer

	// streaming is held during each write to in.Stream.
	streaming sync.Mutex
	streamEnd bool
}

// Invoke delivers an event to the first environment that is free, waiting in
// the queue for one, and waits for the result. An error that the function
// reports, a timeout and a crash are results. Invoke returns an error if the
// platform is closed, if the context ends the wait (the function, once it has
// the event, goes on), or if every environment has failed to initialise three
// times in a row.
func (p *Platform) Invoke(ctx context.Context, in Invocation) (Result, error) {
	c := &call{id: cmp.Or(in.RequestID, newRequestID()), in: in, done: make(chan struct{})}
	if err := p.enqueue(c); err != nil {
		return Result{}, err
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		p.giveUp(c, context.Cause(ctx))
	}
	c.endStream()
	if c.err != nil {
		return Result{RequestID: c.id}, c.err
	}
	return c.result, nil
}

func (p *Platform) enqueue(c *call) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.in.Queued != nil {
		c.in.Queued()
	}
	if p.closed {
		return ErrClosed
	}
	if err := p.unavailable(); err != nil {
		return err
	}
	p.queue = append(p.queue, c)
	p.dispatch()
	return nil
}

// giveUp ends the wait for a call that has no result yet.
func (p *Platform) giveUp(c *call, cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = slices.DeleteFunc(p.queue, func(queued *call) bool { return queued == c })
	c.letReturn(fmt.Errorf("locallambda: no longer waiting for invocation %s: %w", c.id, cause))
}

// dispatch gives the queued calls, oldest first, to the environments that can
// take them. The caller holds p.mu.
func (p *Platform) dispatch() {
	p.queue = slices.DeleteFunc(p.queue, func(c *call) bool {
		proc := p.pick(c)
		if proc != nil {
			p.deliver(proc, c)
		}
		return proc != nil
	})
}

// pick returns the least busy process that can take a call now, or nil.
func (p *Platform) pick(c *call) *process {
	var best *process
	for _, env := range p.envs {
		proc := env.process
		if proc != nil && proc.canTake(c.id) && (best == nil || len(proc.running) < len(best.running)) {
			best = proc
		}
	}
	return best
}

// deliver hands a call to a process that can take it. The caller holds p.mu.
func (p *Platform) deliver(proc *process, c *call) {
	now := time.Now()
	c.result = Result{RequestID: c.id, Environment: proc.env.number, LogStream: proc.stream, TraceID: newTraceID(), Started: now}
	_ = proc.output.lines.take() // printed before the delivery
	left := p.cfg.Timeout - proc.spent
	proc.spent = 0
	c.deadline = now.Add(left)
	c.timer = time.AfterFunc(left, func() { p.expire(proc, c) })
	proc.running[c.id] = c
	proc.used = true
	proc.thaw()
	p.note(proc, eventInvoked, c.id, "")
	next := proc.waiting[0]
	proc.waiting = proc.waiting[1:]
	next <- c
}

// resolve completes the result of a call with how it ended, unless it has ended
// already, and lets Invoke return. The caller holds p.mu.
func (p *Platform) resolve(proc *process, c *call, e ending) {
	if c.ended() {
		return
	}
	c.result.Outcome, c.result.Payload, c.result.ContentType = e.outcome, e.payload, e.contentType
	c.result.ErrorType, c.result.ErrorMessage, c.result.StackTrace = e.ErrorType, e.ErrorMessage, e.StackTrace
	if log := proc.output.lines.take(); !p.managed() {
		c.result.Log = log
	}
	c.result.Ended = time.Now()
	p.note(proc, string(e.outcome), c.id, e.ErrorMessage)
	c.letReturn(nil)
}

func (c *call) ended() bool { return c.result.Outcome != "" }

// letReturn lets Invoke return, with the result or else with that error. The
// caller holds Platform.mu.
func (c *call) letReturn(err error) {
	if !c.returned {
		c.err = err
		c.returned = true
		close(c.done)
	}
}

// expire acts on a call whose deadline has passed: the process of a classic
// environment is ended, unless it is to live on, and its end resolves the call;
// a managed one is left alone, and the call keeps its place in it until the
// handler returns (see
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-managed-instances-execution-environment.html).
func (p *Platform) expire(proc *process, c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if proc.running[c.id] != c {
		return
	}
	c.expired = true
	if p.managed() || p.cfg.LivesOn {
		p.resolve(proc, c, timedOut(c.id, p.cfg.Timeout))
	} else {
		proc.end()
	}
}

// Write passes a piece of the response on, if Invoke's caller wants it. It
// never fails.
func (c *call) Write(piece []byte) (int, error) {
	c.streaming.Lock()
	defer c.streaming.Unlock()
	if c.in.Stream != nil && !c.streamEnd {
		_, err := c.in.Stream.Write(piece)
		c.streamEnd = err != nil
	}
	return len(piece), nil
}

// endStream returns when no write to the stream is under way and none will
// follow, so that Invoke's caller has it to itself.
func (c *call) endStream() {
	c.streaming.Lock()
	defer c.streaming.Unlock()
	c.streamEnd = true
}
