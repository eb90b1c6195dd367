package locallambda

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Outcome says how an invocation ended. The zero value is none of them.
type Outcome string

// The ways an invocation ends.
const (
	Succeeded Outcome = "succeeded" // the function returned a response
	Failed    Outcome = "failed"    // the function reported an error, or its response was refused
	TimedOut  Outcome = "timed out" // the deadline passed first
	Crashed   Outcome = "crashed"   // the process ended first
)

// Invocation is one event for the function. The zero value is an invocation
// with the payload {} in any environment.
type Invocation struct {
	RequestID string // zero: a new UUID
	Payload   []byte // the event, normally JSON; nil means {}

	// Stream receives the response as it arrives, piece by piece, and lifts the
	// 6 MB limit as invoking with response streaming does. It is not written to
	// after Invoke has returned; a write that fails is the last one. Nil: the
	// response is only collected.
	Stream io.Writer

	// Queued is called, while the platform is locked, when the invocation has its
	// place in the line. Nil: it is not.
	Queued func()

	// Environment is the number of the environment that is to handle the
	// invocation, which waits for it to be free; zero: any.
	Environment int
}

// Result is what became of an invocation. The zero value is not a result.
type Result struct {
	RequestID   string
	Environment int     // the number of the environment that handled it, from 1
	Outcome     Outcome // never empty
	// Payload is the response, or after a function error the error document, in
	// JSON with errorType and errorMessage.
	Payload     []byte
	ContentType string // of the payload

	FunctionError string          // "", or "Unhandled" unless the outcome is Succeeded
	ErrorType     string          // such as Sandbox.Timedout; empty when it succeeded
	ErrorMessage  string          // empty when it succeeded
	StackTrace    json.RawMessage // as the function reported it; nil: none

	// Log is what the environment printed from the delivery to the answer, at most
	// its first 10,000 lines. Nil with Concurrency above 1, where nobody can tell
	// whose a line is.
	Log []string
	// LogStream is the name of the log stream of the process that handled it.
	LogStream string

	Started time.Time // when it was delivered
	Ended   time.Time // when its response was complete, or its failure certain
}

// call is an invocation on its way. Platform.mu guards the fields between the
// blank lines.
type call struct {
	id   string
	in   Invocation
	done chan struct{} // closed when result or err is final

	result   Result
	err      error
	settled  bool // done is closed; after an error the call may still be running
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
// line for one, and waits for the result. An error the function reports, a
// timeout and a crash are results. It returns an error when the platform is
// closed, when the context ends the wait (the function, once it has the event,
// goes on), when in.Environment does not exist, or when every environment that
// could take the event has failed to initialise three times in a row.
func (p *Platform) Invoke(ctx context.Context, in Invocation) (Result, error) {
	c := &call{id: in.RequestID, in: in, done: make(chan struct{})}
	if c.id == "" {
		c.id = newRequestID()
	}
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
	if p.closed {
		return ErrClosed
	}
	if c.in.Environment < 0 || c.in.Environment > len(p.envs) {
		return p.noSuchEnvironment(c.in.Environment)
	}
	if err := p.unavailable(c); err != nil {
		return err
	}
	p.queue = append(p.queue, c)
	if c.in.Queued != nil {
		c.in.Queued()
	}
	p.dispatch()
	return nil
}

// giveUp ends the wait for a call that has no result yet.
func (p *Platform) giveUp(c *call, cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.queue, c); i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
	}
	p.abandon(c, fmt.Errorf("locallambda: no longer waiting for invocation %s: %w", c.id, cause))
}

// dispatch gives the queued calls, oldest first, to the environments that can
// take them. The caller holds p.mu.
func (p *Platform) dispatch() {
	waiting := p.queue[:0:0]
	for _, c := range p.queue {
		if sb := p.pick(c); sb != nil {
			p.deliver(sb, c)
		} else {
			waiting = append(waiting, c)
		}
	}
	p.queue = waiting
}

// pick returns the least busy environment that can take a call now, or nil.
func (p *Platform) pick(c *call) *sandbox {
	var best *sandbox
	for _, env := range p.eligible(c) {
		sb := env.sandbox
		if sb != nil && sb.canTake(c.id) && (best == nil || len(sb.running) < len(best.running)) {
			best = sb
		}
	}
	return best
}

// eligible returns the environments a call may run in.
func (p *Platform) eligible(c *call) []*environment {
	if n := c.in.Environment; n > 0 {
		return p.envs[n-1 : n]
	}
	return p.envs
}

// deliver hands a call to an environment that can take it. The caller holds
// p.mu.
func (p *Platform) deliver(sb *sandbox, c *call) {
	now := time.Now()
	c.result = Result{RequestID: c.id, Environment: sb.env.number, LogStream: sb.stream, Started: now}
	_ = sb.output.lines.record.take() // of the time before
	c.deadline = now.Add(p.cfg.Timeout)
	c.timer = time.AfterFunc(p.cfg.Timeout, func() { p.expire(sb, c) })
	sb.running[c.id] = c
	sb.thaw()
	p.note(sb, EventInvoked, c.id, "")
	next := sb.waiting[0]
	sb.waiting = sb.waiting[1:]
	next <- c
}

// settle records how a call ended, unless that is known already, and lets
// Invoke return. The caller holds p.mu.
func (p *Platform) settle(sb *sandbox, c *call, end ending) {
	if c.ended() {
		return
	}
	end.describe(&c.result)
	if log := sb.output.lines.record.take(); !p.managed() {
		c.result.Log = log
	}
	c.result.Ended = time.Now()
	p.note(sb, eventFor(end.outcome), c.id, c.result.ErrorMessage)
	if !c.settled {
		c.settled = true
		close(c.done)
	}
}

func (c *call) ended() bool { return c.result.Outcome != "" }

// abandon lets Invoke return an error instead of a result. The caller holds
// p.mu.
func (p *Platform) abandon(c *call, err error) {
	if c.settled {
		return
	}
	c.err = err
	c.settled = true
	close(c.done)
}

// expire acts on a call whose deadline has passed: a classic environment is
// killed, and its end settles the call; a managed one is left alone, and the
// call keeps its place in it until the handler returns (see
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-managed-instances-execution-environment.html).
func (p *Platform) expire(sb *sandbox, c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sb.running[c.id] != c {
		return
	}
	c.expired = true
	switch {
	case p.managed():
		p.settle(sb, c, timedOut(c.id, p.cfg.Timeout))
		return
	case c.ended():
		p.note(sb, EventTimedOut, c.id, "it did not ask for the next invocation before the deadline")
	}
	sb.kill()
}

// stream passes a piece of the response on. Only one goroutine calls it.
func (c *call) stream(piece []byte) {
	if c.in.Stream == nil {
		return
	}
	c.streaming.Lock()
	defer c.streaming.Unlock()
	if c.streamEnd {
		return
	}
	if _, err := c.in.Stream.Write(piece); err != nil {
		c.streamEnd = true
	}
}

// endStream returns when no write to the stream is under way and none will
// follow, so that Invoke's caller has it to itself.
func (c *call) endStream() {
	c.streaming.Lock()
	defer c.streaming.Unlock()
	c.streamEnd = true
}
