package delivery

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// environment is one execution environment of the function, and its connection
// to the store. It handles one invocation at a time, and keeps nothing when it
// dies.
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html
type environment struct {
	w      *world
	id     int
	random *rand.Rand
	died   chan struct{}

	dead   bool
	inv    *invocation
	grants map[string]*grant // by token
	latest map[string]*grant // by the name as the store knows it
	open   map[*run]bool     // their effect may have happened, their completion has not
}

// grant is a claim that the store has applied.
type grant struct {
	name   string
	fence  int64
	held   bool
	run    *run // nil until the handler begins
	faults int  // in a row
}

// crash kills the environment in the middle of an invocation.
func (e *environment) crash() {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	if !e.dead {
		e.w.crashes++
		e.die()
	}
}

// die ends the environment: what its process does from then on reaches nobody.
// The caller holds w.mu.
func (e *environment) die() {
	if e.dead {
		return
	}
	e.dead = true
	for r := range e.open {
		e.w.end(r)
		if r.effect {
			r.event.lostCompletions++
		}
	}
	close(e.died)
	e.inv.cancel()
}

// began notes that a handler runs under a lease. The caller holds w.mu.
func (e *environment) began(r *run, lease lock.Lease) {
	e.open[r] = true
	g := e.latest[namespace+"/"+lease.Key.Name]
	if g == nil || g.fence != lease.Fence {
		e.w.fail("%s runs under a lock that the store did not give", r.event.id)
		return
	}
	g.run = r
}

var errConnection = errors.New("connection lost")

func temporary(rejected bool) error {
	return &driver.Error{Store: "simulated", Temporary: true, Rejected: rejected, Err: errConnection}
}

// ask sends one request, which step applies. 1.2 % of the requests are
// throttled, get lost, or lose their answer, at most two in a row, so that
// repeating them is enough.
func (e *environment) ask(ctx context.Context, g *grant, step func(context.Context) (driver.Row, bool, error)) (driver.Row, bool, error) {
	e.delay()
	e.w.mu.Lock()
	if e.dead {
		e.w.mu.Unlock()
		return driver.Row{}, false, temporary(false)
	}
	fault := e.random.IntN(250)
	if g.faults == 2 {
		fault = -1
	}
	switch fault {
	case 0, 1:
		g.faults++
		e.w.mu.Unlock()
		return driver.Row{}, false, temporary(fault == 0)
	case 2:
		_, _, _ = step(ctx)
		g.faults++
		e.w.mu.Unlock()
		return driver.Row{}, false, temporary(false)
	}
	g.faults = 0
	row, ok, err := step(ctx)
	e.w.mu.Unlock()
	e.delay()
	return row, ok, err
}

func (e *environment) delay() {
	e.w.mu.Lock()
	d := time.Millisecond + time.Duration(e.random.Int64N(int64(longestDelay-time.Millisecond)))
	e.w.mu.Unlock()
	time.Sleep(d)
}

// Acquire implements driver.Store. One in a thousand kills the environment,
// applied or not.
func (e *environment) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	e.w.mu.Lock()
	g := e.grants[c.Token]
	if g == nil {
		g = &grant{name: c.Name}
		e.grants[c.Token] = g
	}
	e.w.mu.Unlock()
	return e.ask(ctx, g, func(ctx context.Context) (driver.Row, bool, error) {
		death := e.random.IntN(2000)
		if death == 0 {
			e.w.crashes++
			e.die()
			return driver.Row{}, false, temporary(false)
		}
		row, ok, err := e.w.store.Acquire(ctx, c)
		if ok {
			g.fence, g.held = row.Fence, true
			e.latest[c.Name] = g
		}
		if death == 1 {
			e.w.crashes++
			e.die()
			return driver.Row{}, false, temporary(false)
		}
		return row, ok, err
	})
}

// Release implements driver.Store.
func (e *environment) Release(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	e.w.mu.Lock()
	g := e.grants[s.Token]
	e.w.mu.Unlock()
	return e.ask(ctx, g, func(ctx context.Context) (driver.Row, bool, error) {
		r := g.run
		if r == nil || s.Memory == nil {
			if r != nil {
				delete(e.open, r)
			}
			if r != nil && r.effect {
				e.w.fail("%s had its effect, and its lock is released without completion", r.event.id)
			}
			row, ok, err := e.w.store.Release(ctx, s)
			g.held = g.held && !ok
			return row, ok, err
		}
		return e.complete(ctx, g, s)
	})
}

// complete applies a release that completes the event. The caller holds w.mu.
func (e *environment) complete(ctx context.Context, g *grant, s *driver.Settlement) (driver.Row, bool, error) {
	r := g.run
	if !r.effect {
		e.w.fail("%s is completed without an effect", r.event.id)
	}
	switch r.fate {
	case diesCompleting:
		e.w.crashes++
		e.die()
		return driver.Row{}, false, temporary(false)
	case denied:
		if e.open[r] { // else the answer was lost, and this is the request again
			r.event.lostCompletions++
		}
		delete(e.open, r)
		g.held = false // until its lease ends, as requested
		r.event.denied = true
		return driver.Row{}, false, &driver.Error{Store: "simulated", Rejected: true, Err: errors.New("denied")}
	}
	row, ok, err := e.w.store.Release(ctx, s)
	if ok && err == nil {
		r.event.completions++
		r.event.completedAt = time.Now()
		g.held = false
		delete(e.open, r)
	}
	if r.fate == diesCompleted {
		e.w.crashes++
		e.die()
		return driver.Row{}, false, temporary(false)
	}
	return row, ok, err
}

// Renew implements driver.Store. No lease is renewed where the platform kills
// at the deadline.
func (e *environment) Renew(context.Context, *driver.Renewal) (driver.Row, bool, error) {
	e.w.complain("a lease was renewed")
	return driver.Row{}, false, temporary(true)
}
