// Package clock is the time as one process sees it, and the chance: the
// system's, unless a context carries another clock. In a simulation every
// process has its own one, and chance is part of the seed.
package clock

import (
	"context"
	cryptorand "crypto/rand"
	"math/rand/v2"
	"time"
)

// Clock is what a process knows of the time and by chance. Its methods do what
// the functions of packages time, context, crypto/rand and math/rand/v2 with
// the same names do.
type Clock interface {
	// Now returns a time with two readings: that of the wall clock, which may be
	// wrong and may be set, and that of the monotonic clock, which stands still
	// while the process is frozen.
	Now() time.Time
	// AfterFunc counts d by the monotonic clock.
	AfterFunc(d time.Duration, f func()) Timer
	// Sleep counts d by the monotonic clock. It returns the context's cause if the
	// context ends first.
	Sleep(ctx context.Context, d time.Duration) error
	// WithDeadlineCause counts the time to the deadline by the monotonic clock.
	WithDeadlineCause(ctx context.Context, deadline time.Time, cause error) (context.Context, context.CancelFunc)
	// Text returns 26 letters and digits that cannot be guessed.
	Text() string
	// Uint64 makes the clock a [rand.Source], for pauses and orders.
	Uint64() uint64
}

// Timer is what package lock needs of a [time.Timer].
type Timer interface {
	Stop() bool
	Reset(d time.Duration) bool
}

type key struct{}

// With returns a context for a process whose clock is c.
func With(ctx context.Context, c Clock) context.Context { return context.WithValue(ctx, key{}, c) }

// From returns the clock of the process that ctx belongs to.
func From(ctx context.Context) Clock {
	if c, ok := ctx.Value(key{}).(Clock); ok {
		return c
	}
	return system{}
}

// Wall returns the wall clock's time, for what is stored and for comparisons
// with it. It has no monotonic reading, which would hide the time for which the
// process was frozen.
func Wall(c Clock) time.Time { return c.Now().Round(0) }

// Jitter returns a random time below d, or zero if d is not positive, so that
// callers who failed together do not try again together.
func Jitter(c Clock, d time.Duration) time.Duration {
	if d <= 0 {
		return 0 // the turn of a holder that was not seen to work
	}
	return time.Duration(rand.New(c).Int64N(int64(d)))
}

type system struct{}

func (system) Now() time.Time { return time.Now() }

func (system) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

func (system) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (system) WithDeadlineCause(ctx context.Context, deadline time.Time, cause error) (context.Context, context.CancelFunc) {
	return context.WithDeadlineCause(ctx, deadline, cause)
}

func (system) Text() string { return cryptorand.Text() }

func (system) Uint64() uint64 { return rand.Uint64() }
