package objectstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// Probe checks that a service applies only one of several concurrent writes
// with the same condition, and that the times in a response come from one
// clock. Some services that are compatible with a well-known one ignore
// conditions, or check them first and write later: they would grant one lock to
// several callers. For these, Probe returns a *driver.ConfigError.
//
// Probe sends 36 writes and 4 reads in five steps, each as long as one request.
// It leaves five objects of 45 bytes, whose random keys begin with "~probe-",
// for the lifecycle rule that deletes old locks. It keeps completed steps, so
// that the next call of Run resumes after an error or an expired context. The
// zero value is ready to use, and safe for concurrent use.
type Probe struct {
	passed  atomic.Bool
	begin   sync.Once
	probing chan struct{} // semaphore: its holder owns the fields below
	races   int           // completed races with If-Match
	last    made
}

// made is an object that a step created.
type made struct {
	key     string
	version string // empty if no response told it
	began   time.Time
}

// Passed reports whether the service has passed.
func (p *Probe) Passed() bool { return p.passed.Load() }

// Run probes the service unless it has passed. If several callers call it, one
// probes, and the others wait until it is done or their contexts end.
func (p *Probe) Run(ctx context.Context, o Objects) error {
	if p.Passed() {
		return nil
	}
	p.begin.Do(func() { p.probing = make(chan struct{}, 1) })
	select {
	case p.probing <- struct{}{}:
		defer func() { <-p.probing }()
	case <-ctx.Done():
		return again(o, fmt.Errorf("another request is checking whether the service honours conditional writes, and this one waited for it: %w", ctx.Err()))
	}
	for !p.Passed() {
		if ctx.Err() != nil {
			return p.failed(again(o, fmt.Errorf("it goes on with the next request: %w", ctx.Err())))
		}
		if err := p.step(ctx, o); err != nil {
			p.last = made{} // its version may have changed
			return p.failed(err)
		}
		p.passed.Store(p.races == probeRaces)
	}
	return nil
}

// stepTime is the time that a step gets, whatever the caller's deadline.
const stepTime = time.Second

// finish returns a context for a step. It may outlive ctx's deadline, because
// the result of an interrupted step would be lost, but ends immediately if the
// caller cancels ctx.
func finish(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := time.Now().Add(stepTime)
	if deadline, ok := ctx.Deadline(); !ok || !deadline.Before(limit) {
		return context.WithCancel(ctx)
	}
	own, cancel := context.WithDeadline(context.WithoutCancel(ctx), limit)
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})
	return own, func() { stop(); cancel() }
}

// again returns a retryable error for a request that was not sent.
func again(o Objects, err error) error {
	return &driver.Error{Store: o.String(), Unapplied: true, Err: err}
}

// failed returns the error of a step. If the service has failed the probe, the
// next call starts from the beginning, because the service may have been fixed.
func (p *Probe) failed(err error) error {
	var e *driver.Error
	if err = unapplied(err, true); !errors.As(err, &e) { // the request that waits for the probe was not sent
		p.races = 0
		return err
	}
	e.Err = fmt.Errorf("checking whether the service honours conditional writes, %d of %d races done: %w", p.races, probeRaces, e.Err)
	return e
}

// step races writes to create an object and, if a previous step created one, to
// replace it.
func (p *Probe) step(ctx context.Context, o Objects) error {
	ctx, cancel := finish(ctx)
	defer cancel()
	if p.last.key != "" && p.last.version == "" {
		object, err := o.Get(ctx, p.last.key)
		p.last.version = object.Version
		if errors.Is(err, ErrNotExist) {
			err = again(o, errors.New("of several writes to a new object, none was applied"))
		}
		return err
	}
	next := made{key: probePrefix + clock.From(ctx).Text(), began: time.Now()}
	create, replace := race{key: next.key}, race{key: p.last.key, version: p.last.version}
	var clocks error
	var wg sync.WaitGroup
	wg.Go(func() { create.run(ctx, o) })
	if p.last.key != "" {
		wg.Go(func() { replace.run(ctx, o) })
		wg.Go(func() { clocks = p.last.checkClocks(ctx, o) })
	}
	wg.Wait()
	for _, err := range []error{create.verdict(o), replace.verdict(o), clocks} {
		if err != nil {
			return err
		}
	}
	if p.last.key != "" {
		p.races++
	}
	if len(create.won) > 0 {
		next.version = create.won[0]
	}
	p.last = next
	return nil
}

// checkClocks reads the object and compares its times. The process may have
// been frozen since the write, together with its monotonic clock.
func (m *made) checkClocks(ctx context.Context, o Objects) error {
	object, err := o.Get(ctx, m.key)
	if errors.Is(err, ErrNotExist) { // something deletes unknown objects
		err = again(o, err)
	}
	if err != nil {
		return err
	}
	now := time.Now()
	return clocksAgree(o, &object, max(now.Sub(m.began), now.Round(0).Sub(m.began.Round(0))))
}
