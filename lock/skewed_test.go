package lock_test

import (
	"context"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/robustness/simclock"
	"github.com/lambdalock/lambdalock/lock"
)

// locker is a [*lock.Locker], or one of a process with its own clock.
type locker interface {
	Acquire(context.Context, lock.Key) (*lock.Lock, error)
	AcquireAll(context.Context, ...lock.Key) (*lock.Lock, error)
	Do(context.Context, lock.Key, func(context.Context) error) error
	Latest(context.Context, lock.Key, func(context.Context) error) error
}

// onClock is the Locker of a process with its own clock.
type onClock struct {
	locker locker
	clock  *simclock.Clock
}

// skewed returns l for a process whose clock is ahead of the others'.
func skewed(l locker, by time.Duration) onClock { return onClock{l, simclock.New(by, 0)} }

// freeze freezes the process, and its caller with it.
func (o onClock) freeze(d time.Duration) {
	o.clock.Freeze()
	time.Sleep(d)
	o.clock.Thaw()
}

func (o onClock) Acquire(ctx context.Context, k lock.Key) (*lock.Lock, error) {
	return o.locker.Acquire(clock.With(ctx, o.clock), k)
}

func (o onClock) AcquireAll(ctx context.Context, k ...lock.Key) (*lock.Lock, error) {
	return o.locker.AcquireAll(clock.With(ctx, o.clock), k...)
}

func (o onClock) Do(ctx context.Context, k lock.Key, work func(context.Context) error) error {
	return o.locker.Do(clock.With(ctx, o.clock), k, work)
}

func (o onClock) Latest(ctx context.Context, k lock.Key, work func(context.Context) error) error {
	return o.locker.Latest(clock.With(ctx, o.clock), k, work)
}
