package locallambda

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// hopeless is the number of failed initialisations in a row after which
	// invocations are refused instead of kept waiting.
	hopeless = 3

	maxBackoff = 10 * time.Second
)

// environment is a numbered place in which one process after another runs.
// Platform.mu guards all but the number and the channel.
type environment struct {
	number   int
	sandbox  *sandbox   // the current process; nil between two
	first    chan error // receives how the first initialisation went
	failures int        // initialisations that failed, in a row
	failure  *initError // the last of them
}

// initError says why an environment could not be initialised.
type initError struct {
	env    int
	reason string
	output []string // the last lines the process printed
	cause  error    // why there was no process at all; else nil
}

func (e *initError) Unwrap() error { return e.cause }

func (e *initError) Error() string {
	text := fmt.Sprintf("locallambda: environment %d failed to initialise: %s", e.env, e.reason)
	if e.cause != nil {
		return text
	}
	if len(e.output) == 0 {
		return text + "; it printed nothing"
	}
	return text + "; its last output:\n\t" + strings.Join(e.output, "\n\t")
}

// keep runs one process after another in an environment until the platform
// closes.
func (p *Platform) keep(env *environment) {
	for {
		wait := p.run(env)
		if !p.pause(context.Background(), wait) {
			return
		}
	}
}

// run runs one process from its start to its end and returns how long to wait
// before the next one.
func (p *Platform) run(env *environment) time.Duration {
	sb, err := p.launch(env)
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.failInit(&initError{env: env.number, reason: err.Error(), cause: err}, env)
	}
	if sb == nil {
		return 0
	}
	state := sb.wait()
	return p.bury(sb, state)
}

// bury settles what an ended process leaves behind.
func (p *Platform) bury(sb *sandbox, state string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	env := sb.env
	env.sandbox = nil
	sb.initTimer.Stop()
	asked := p.closed || sb.initTimedOut
	for _, c := range sb.calls() {
		c.timer.Stop()
		switch {
		case c.expired && !p.managed():
			asked = true
			p.settle(sb, c, timedOut(c.id, p.cfg.Timeout))
		case p.closed:
			p.abandon(c, ErrClosed)
		case !c.ended():
			asked = true
			p.settle(sb, c, crashed(c.id, state))
		}
	}
	if !asked {
		p.note(sb, EventCrashed, "", state)
	}
	p.note(sb, EventStopped, "", state)
	switch {
	case p.closed:
		return 0
	case sb.killed && !sb.initTimedOut:
		return 0 // by Kill or at a deadline, which says nothing about the next one
	case !sb.ready:
		return p.failInit(sb.initError(state), env)
	case !sb.used:
		// One that leaves without work and unasked would do so again at once.
		return p.firstBackoff
	}
	return 0
}

// calls returns the calls a process has in hand in the order of delivery.
func (sb *sandbox) calls() []*call {
	return slices.SortedFunc(maps.Values(sb.running), func(a, b *call) int {
		return cmp.Compare(a.deadline.UnixNano(), b.deadline.UnixNano())
	})
}

// failInit records a failed initialisation and returns the wait before the
// next. The caller holds p.mu.
func (p *Platform) failInit(failure *initError, env *environment) time.Duration {
	env.failures++
	env.failure = failure
	select {
	case env.first <- failure:
	default: // only the first start is waited for
	}
	waiting := p.queue[:0:0]
	for _, c := range p.queue {
		if err := p.unavailable(c); err != nil {
			p.abandon(c, err)
		} else {
			waiting = append(waiting, c)
		}
	}
	p.queue = waiting
	return min(p.firstBackoff<<min(env.failures-1, 16), maxBackoff)
}

// unavailable returns an error when no environment that could take a call has
// any prospect of doing so. The caller holds p.mu.
func (p *Platform) unavailable(c *call) error {
	var last *initError
	for _, env := range p.eligible(c) {
		if env.failures < hopeless {
			return nil
		}
		last = env.failure
	}
	return last
}

// initError explains why a process that ended with the given state was never
// ready.
func (sb *sandbox) initError(state string) *initError {
	reason := "the process ended (" + state + ") before it asked for an invocation"
	switch {
	case sb.initReport != "":
		reason = "it reported " + sb.initReport
	case sb.initTimedOut:
		reason = fmt.Sprintf("it did not ask for an invocation within %v", sb.p.initLimit)
	}
	return &initError{env: sb.env.number, reason: reason, output: sb.output.lines.last()}
}
