package fault

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/schedule"
)

// Exchange is a request and its answer, as a layer sends it on.
type Exchange[A any] struct {
	// Apply sends the request on and returns its answer. It is called again
	// for a copy that arrives late, perhaps while the sender reads the first
	// answer.
	Apply func(_ context.Context, late bool) (A, error)
	// Spoil returns what the sender gets instead of the answer, which is zero
	// if there is none. It is called with the faults that do not hang.
	Spoil func(Fault, A) (A, error)
}

// Meet lets the request meet its fault. A request whose context has ended is
// not sent. Copies are applied by late.
func (e Exchange[A]) Meet(ctx context.Context, d Decision, late Late) (A, error) {
	var answer, none A
	if err := ctx.Err(); err != nil {
		return none, err
	}
	sent := time.Now()
	applyLate := func() {
		late.After(d.Delay-time.Since(sent), func() {
			if answer, err := e.Apply(context.WithoutCancel(ctx), true); err == nil {
				_, _ = e.Spoil(ApplyThenDrop, answer)
			}
		})
	}
	switch d.Fault {
	case None:
		return e.Apply(ctx, false)
	case Duplicate:
		applyLate()
		return e.Apply(ctx, false)
	case DelayBefore:
		if gaveUp := wait(ctx, d.Delay); gaveUp != nil {
			applyLate() // it is on its way
			return none, gaveUp
		}
		return e.Apply(ctx, false)
	case DelayAfter:
		answer, err := e.Apply(ctx, false)
		if gaveUp := wait(ctx, d.Delay); gaveUp != nil {
			if err == nil {
				_, _ = e.Spoil(ApplyThenDrop, answer)
			}
			return none, gaveUp
		}
		return answer, err
	case ApplyThenDrop, ApplyThenFail, Truncate, ApplyThenHang:
		answer, _ = e.Apply(ctx, false)
	case HangThenApply, DropThenApply:
		applyLate()
	}
	switch d.Fault {
	case Hang, ApplyThenHang, HangThenApply:
		<-ctx.Done()
		_, _ = e.Spoil(ApplyThenDrop, answer)
		return none, ctx.Err()
	}
	return e.Spoil(d.Fault, answer)
}

// wait returns the context's error if the context ends first.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Late applies the copies of requests that arrive late.
type Late interface {
	// After calls apply after d.
	After(d time.Duration, apply func())
}

// Copies applies late copies each on a goroutine of its own. The zero value is
// ready to use.
type Copies struct {
	// Turns, if not nil, says when each copy takes its turn.
	Turns *schedule.Scheduler

	under sync.WaitGroup
}

// After implements [Late].
func (c *Copies) After(d time.Duration, apply func()) {
	at := schedule.Point{What: "late copy", Due: int64(d), Since: c.Turns.Now()}
	c.under.Go(func() {
		time.Sleep(d)
		c.Turns.Wait(at)
		apply()
	})
}

// Wait waits until all copies are applied.
func (c *Copies) Wait() { c.under.Wait() }

// Kept keeps late copies until they are asked for. The zero value is ready to
// use.
type Kept struct {
	mu   sync.Mutex
	late []func()
}

// After implements [Late].
func (k *Kept) After(_ time.Duration, apply func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.late = append(k.late, apply)
}

// Apply applies all copies in the order in which they were sent. Each call
// applies all of them again, because a network may deliver several copies.
func (k *Kept) Apply() {
	k.mu.Lock()
	late := k.late
	k.mu.Unlock()
	for _, apply := range late {
		apply()
	}
}

// ErrInjected is the cause of every error that a fault returns.
var ErrInjected = errors.New("injected fault")
