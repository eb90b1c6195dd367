package locallambda

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// maxInitFailures is the number of failed initialisations in a row after
	// which invocations are refused instead of kept waiting.
	maxInitFailures = 3

	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 10 * time.Second
)

// environment is a numbered execution environment, in which one process after
// another runs. Platform.mu guards all but the number and the channel.
type environment struct {
	number   int
	process  *process   // nil between two
	first    chan error // receives how the first initialisation went
	failures int        // initialisations that failed, in a row
	late     bool       // the last initialisation took longer than the Init phase
	failure  *initError // the last of them
}

// initError says why an environment could not be initialised.
type initError struct {
	env    int
	reason string
	output []string // the last lines that the process printed
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
	for wait := time.Duration(0); p.pause(context.Background(), wait); {
		wait = p.run(env)
	}
}

// run runs one process from its start to its end and returns how long to wait
// before the next one.
func (p *Platform) run(env *environment) time.Duration {
	proc, err := p.launch(env)
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.failInit(env, &initError{env: env.number, reason: err.Error(), cause: err})
	}
	if proc == nil {
		return 0
	}
	return p.reap(proc, proc.wait())
}

// reap resolves the calls of a process that ended with that state, and returns
// how long to wait before the next process.
func (p *Platform) reap(proc *process, state string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	proc.env.process = nil
	proc.initTimer.Stop()
	explained := p.closed || proc.initTimedOut
	for _, c := range proc.calls() {
		c.timer.Stop()
		switch {
		case c.expired && !p.managed():
			explained = true
			p.resolve(proc, c, timedOut(c.id, p.cfg.Timeout))
		case p.closed:
			c.letReturn(ErrClosed)
		case !c.ended():
			explained = true
			p.resolve(proc, c, crashed(c.id, state))
		}
	}
	if !explained {
		p.note(proc, string(Crashed), "", state)
	}
	p.note(proc, eventStopped, "", state)
	switch {
	case p.closed, proc.killed && !proc.initTimedOut, proc.used:
		return 0 // the next process need not end immediately
	case proc.isLate():
		proc.env.late = true
		return 0
	case !proc.ready:
		return p.failInit(proc.env, proc.initError(state))
	}
	return firstBackoff
}

// calls returns the calls that a process has in hand in the order of delivery.
func (proc *process) calls() []*call {
	return slices.SortedFunc(maps.Values(proc.running), func(a, b *call) int { return a.deadline.Compare(b.deadline) })
}

// failInit notes a failed initialisation and returns the wait before the next
// one. The caller holds p.mu.
func (p *Platform) failInit(env *environment, failure *initError) time.Duration {
	env.failures++
	env.failure = failure
	env.reportFirst(failure)
	if err := p.unavailable(); err != nil {
		for _, c := range p.queue {
			c.letReturn(err)
		}
		p.queue = nil
	}
	return min(firstBackoff<<min(env.failures-1, 16), maxBackoff)
}

// reportFirst tells Start how the first initialisation went.
func (env *environment) reportFirst(err error) {
	select {
	case env.first <- err:
	default: // it was told already
	}
}

// unavailable returns an error if every environment has failed to initialise
// maxInitFailures times in a row. The caller holds p.mu.
func (p *Platform) unavailable() error {
	for _, env := range p.envs {
		if env.failures < maxInitFailures {
			return nil
		}
	}
	return p.envs[0].failure
}

// initError explains why a process that ended with that state was never ready.
func (proc *process) initError(state string) *initError {
	reason := "the process ended (" + state + ") before it asked for an invocation"
	switch {
	case proc.initReport != "":
		reason = "it reported " + proc.initReport
	case proc.initTimedOut && !proc.repeated.IsZero():
		reason = fmt.Sprintf("it did not ask for an invocation within %v, nor, in the second try, within the function's timeout of %v", proc.p.initLimit, proc.p.cfg.Timeout)
	case proc.initTimedOut:
		reason = fmt.Sprintf("it did not ask for an invocation within %v", proc.p.initLimit)
	}
	return &initError{env: proc.env.number, reason: reason, output: proc.output.lines.last}
}
