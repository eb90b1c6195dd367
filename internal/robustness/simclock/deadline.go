package simclock

import (
	"context"
	"sync"
	"time"
)

// WithDeadlineCause implements [clock.Clock].
func (c *Clock) WithDeadlineCause(parent context.Context, at time.Time, cause error) (context.Context, context.CancelFunc) {
	if cause == nil {
		cause = context.DeadlineExceeded
	}
	if earlier, ok := parent.Deadline(); ok && earlier.Before(at) {
		return context.WithCancel(parent)
	}
	inner, cancel := context.WithCancelCause(parent)
	ctx := &deadline{Context: inner, cancel: cancel, at: at, done: make(chan struct{}), then: map[*func()]struct{}{}}
	ctx.mu.Lock()
	ctx.follow = context.AfterFunc(inner, func() { ctx.end(inner.Err(), nil) })
	ctx.mu.Unlock()
	expire := func() { ctx.end(context.DeadlineExceeded, cause) }
	left := at.Sub(c.Now())
	if left <= 0 {
		expire()
		return ctx, func() {}
	}
	t := c.AfterFunc(left, expire)
	return ctx, func() {
		t.Stop()
		ctx.end(context.Canceled, nil)
	}
}

// deadline is a context whose deadline is by a [Clock].
type deadline struct {
	context.Context // carries the values and the cause
	cancel          context.CancelCauseFunc
	follow          func() bool // stops what ends it with its parent
	at              time.Time
	done            chan struct{}

	mu   sync.Mutex
	err  error
	then map[*func()]struct{}
}

func (d *deadline) end(err, cause error) {
	d.mu.Lock()
	if d.err != nil {
		d.mu.Unlock()
		return
	}
	d.err = err
	d.follow()
	d.cancel(cause)
	close(d.done)
	then := d.then
	d.then = nil
	d.mu.Unlock()
	for f := range then {
		(*f)()
	}
}

// Deadline implements [context.Context].
func (d *deadline) Deadline() (time.Time, bool) { return d.at, true }

// Done implements [context.Context].
func (d *deadline) Done() <-chan struct{} { return d.done }

// Err implements [context.Context].
func (d *deadline) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return d.err
	}
	return d.Context.Err()
}

// AfterFunc lets package context end the contexts below d with the error of d,
// and without a goroutine.
func (d *deadline) AfterFunc(f func()) (stop func() bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		go f()
		return func() bool { return false }
	}
	d.then[&f] = struct{}{}
	return func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		_, waiting := d.then[&f]
		delete(d.then, &f)
		return waiting
	}
}
