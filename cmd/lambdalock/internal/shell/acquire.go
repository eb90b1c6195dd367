package shell

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/inspect"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/lock"
)

// The pauses between acquisitions that fail because of the store.
const (
	firstRetry   = 500 * time.Millisecond
	longestRetry = 5 * time.Second
)

// acquire waits for the lock, or for a signal.
func (r *guardedRun) acquire(ctx context.Context, cancel func()) (*lock.Lock, error) {
	var (
		lk  *lock.Lock
		err error
	)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		lk, err = r.ask(ctx)
	}()
	for {
		select {
		case <-answered:
			if err != nil {
				return nil, r.refused(err)
			}
			return lk, nil
		case s := <-r.signals:
			switch handlingOf(s) {
			case stops:
				stopSelf()
			case ends, passes: // that is what they do to a program that knows nothing of them
				cancel()
				<-answered
				if err == nil {
					_ = lk.Fail(invocation.ErrUnbegun) // otherwise it ends with its lease
				}
				r.signaled = true
				return nil, console.ExitStatus(statusSignal + signalNumber(s))
			case leaves, informs, continues, ignores:
			}
		}
	}
}

func (r *guardedRun) ask(ctx context.Context) (*lock.Lock, error) {
	store, err := r.Open(ctx)
	if err != nil {
		return nil, err
	}
	end := time.Now().Add(r.Wait)
	for try := 0; ; try++ {
		locker, err := lock.New(store, r.options(max(0, time.Until(end))))
		if err != nil {
			return nil, err
		}
		lk, err := r.take(ctx, locker)
		if !r.again(ctx, err, end, try) {
			r.warnOfNamesake(ctx, store, err)
			return lk, err
		}
	}
}

func (r *guardedRun) take(ctx context.Context, locker *lock.Locker) (*lock.Lock, error) {
	if r.Limit > 1 {
		return locker.AcquireOneOf(ctx, r.Key, r.Limit)
	}
	return locker.Acquire(ctx, r.key())
}

// again reports whether to repeat an acquisition, after a pause. Package lock
// gives up on a store within seconds, because a source delivers its event
// again. A command is not repeated.
func (r *guardedRun) again(ctx context.Context, err error, end time.Time, try int) bool {
	failed := (*lock.StoreError)(nil)
	left := time.Until(end)
	if !errors.As(err, &failed) || !failed.Temporary || left <= 0 || ctx.Err() != nil {
		return false
	}
	if try == 0 {
		until := "it answers"
		if r.Wait < forever {
			until = inspect.Stamp(end)
		}
		r.tell("%s; trying again until %s", console.Plain(err), until)
	}
	pause := min(firstRetry<<min(try, 4), longestRetry)
	select {
	case <-ctx.Done():
		return false
	case <-time.After(min(left, pause/2+mathrand.N(pause/2))):
		return true
	}
}

// refused says in one line why the command does not run.
func (r *guardedRun) refused(err error) error {
	var (
		held   *lock.HeldError
		config *lock.ConfigError
		key    *lock.NoKeyError

		interrupted *lock.InterruptedError
	)
	switch {
	case errors.As(err, &interrupted):
		return r.fail(statusUnknown, "%q: the run for the event %q that began at %s by %s was interrupted, so the command does not run: find out whether its work was done, and use lambdalock complete or lambdalock forget",
			r.Key, *r.Event, inspect.Stamp(interrupted.Since), interrupted.Holder)
	case errors.As(err, &held):
		r.tell("%s", describeHeld(held))
		return console.ExitStatus(r.ConflictExitCode)
	case errors.Is(err, lock.ErrCompleted) && r.skipped:
		return console.ExitStatus(0)
	case errors.Is(err, lock.ErrCompleted):
		r.tell("%q: the event %q has succeeded before, so the command does not run", r.Key, *r.Event)
		return console.ExitStatus(0)
	case errors.As(err, &config), errors.As(err, &key):
		return r.fail(console.StatusUsage, "%s", console.Plain(err))
	case errors.Is(err, lock.ErrLost):
		return r.fail(console.StatusUnavailable, "%q: the store took longer than the lease lasts", r.Key)
	}
	return r.fail(console.StatusUnavailable, "%s", console.Plain(err))
}

func describeHeld(e *lock.HeldError) string {
	holder, what, until := "somebody", "", ""
	if e.Holder != "" {
		holder = e.Holder
	}
	if e.Duplicate {
		what = " (for the same event)"
	}
	if e.Limit > 1 {
		holder = fmt.Sprintf("%d commands, one of them %s", e.Limit, holder)
	}
	if !e.Until.IsZero() {
		until = " until " + inspect.Stamp(e.Until)
	}
	if e.Cooldown {
		return fmt.Sprintf("%q stays held%s, because of the --hold-at-least of the last command", e.Key.Name, until)
	}
	return fmt.Sprintf("%q is held by %s%s%s", e.Key.Name, holder, what, until)
}
