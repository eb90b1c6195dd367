package lock

import (
	"context"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
)

// Acquire takes key, waiting for it for up to Options.MaxWait. The error is a
// [*HeldError], [*CompletedError], [*PayloadMismatchError], [*StoreError],
// [*NoKeyError], [*DeadlineError] or [*ConfigError], a [*LostError] if the
// store took longer than the lease, or what Options.OnInterrupted returned.
//
// The caller must end the Lock with Complete, Fail or Release. A Lock that is
// dropped holds the name until its lease ends and, unless that is fixed, for as
// long as the process lives. [Locker.Do] always ends its Lock.
func (l *Locker) Acquire(ctx context.Context, key Key) (*Lock, error) {
	w := &waiter{acquisition: l.newAcquisition(invocation.Believable(ctx), key)}
	ask := w.run
	if l.opts.OnInterrupted != nil && key.Event == "" {
		ask = noEvent
	}
	lk, err := w.acquire(ask)
	if err != nil {
		return nil, err
	}
	return lk.decideInterrupted()
}

// Do runs work while it holds key, and completes the event if work returns nil.
// It returns work's error unchanged. If the lock cannot be acquired, work does
// not run and the error is Acquire's. If work succeeded but the event could not
// be completed, the error is Complete's. The context given to work carries the
// lease and ends when the lease is lost.
func (l *Locker) Do(ctx context.Context, key Key, work func(context.Context) error) error {
	lk, err := l.Acquire(ctx, key)
	if err != nil {
		return err
	}
	defer func() { _ = lk.Fail(err) }() // does nothing after Complete, and reports its own errors
	if err = work(lk.Context()); err != nil {
		return err
	}
	return lk.Complete()
}
