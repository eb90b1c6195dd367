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

// Probe checks that a service applies one of several writes with the same
// condition, and refuses the others, even if they arrive at the same moment.
// Some services that understand the requests of a well-known one ignore its
// conditions, and some check a condition first and write later; a lock kept
// there would be granted to several callers. The error is then a
// *driver.ConfigError. Probe also checks that the times of an answer are by one
// clock: nginx, for example, replaces Date with its own time.
//
// It takes five steps, each as long as one request: four writes race to create
// an object and, from the second step on, four to replace the object of the
// step before, which is read meanwhile. That is 36 writes and 4 reads. It
// leaves five objects of 45 bytes, whose keys begin with "~probe-", for the
// lifecycle rule that deletes old locks. Their names are random, so processes
// that start at the same time do not disturb each other.
//
// A Probe keeps the steps that are done: one whose context ends, or that meets
// an error, goes on there. A step that has begun may last up to a second longer
// than the caller's deadline. So a slow service is probed by and by, even if no
// caller has the time for all of it. The zero value is ready to use, by several
// goroutines at once.
type Probe struct {
	passed atomic.Bool
	begin  sync.Once
	turn   chan struct{} // has room for the one that probes, who owns the rest
	races  int           // for a write with If-Match, done
	last   made
}

// made is an object that a step has created.
type made struct {
	key     string
	version string // empty if no answer told it
	began   time.Time
}

// Passed reports whether the service has passed.
func (p *Probe) Passed() bool { return p.passed.Load() }

// Run probes the service unless it has passed. Of several callers, one probes
// and the others wait, until their contexts end.
func (p *Probe) Run(ctx context.Context, o Objects) error {
	if p.Passed() {
		return nil
	}
	p.begin.Do(func() { p.turn = make(chan struct{}, 1) })
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
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

// stepTime is how long a step may always take.
const stepTime = time.Second

// finish returns a context for a step, which should not be cut short: what it
// has shown would be lost. It ends at once if the caller cancels ctx.
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

// again returns the error of a request that was not sent, and may be repeated.
func again(o Objects, err error) error {
	return &driver.Error{Store: o.String(), Temporary: true, Unapplied: true, Err: err}
}

// failed returns the error of a step. A service that was found out is probed
// from the beginning if it is asked again, because somebody may have mended it.
func (p *Probe) failed(err error) error {
	var e *driver.Error
	if err = unapplied(err); !errors.As(err, &e) { // what waits for the probe was not sent
		p.races = 0
		return err
	}
	e.Err = fmt.Errorf("checking whether the service honours conditional writes, %d of %d races done: %w", p.races, probeRaces, e.Err)
	return e
}

// step has writes race to create an object and, if a step before has created
// one, to replace that.
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

// checkClocks reads the object. Since it was written, the process may have been
// frozen, with one of its clocks.
func (m *made) checkClocks(ctx context.Context, o Objects) error {
	object, err := o.Get(ctx, m.key)
	if errors.Is(err, ErrNotExist) { // somebody deletes what he does not know
		err = again(o, err)
	}
	if err != nil {
		return err
	}
	now := time.Now()
	return clocksAgree(o, &object, max(now.Sub(m.began), now.Round(0).Sub(m.began.Round(0))))
}
