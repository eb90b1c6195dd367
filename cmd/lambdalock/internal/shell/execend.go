package shell

import (
	"errors"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/inspect"
	"github.com/lambdalock/lambdalock/lock"
)

// end releases the lock, or completes the event, and returns the status. The
// command's stays even if that fails, unless another one is asked for: the work
// was done, or was not.
func (r *guardedRun) end(lk *lock.Lock, status console.ExitStatus, failure error) console.ExitStatus {
	if r.Event != nil && status == 0 {
		return r.complete(lk)
	}
	switch err := lk.Fail(failure); {
	case errors.Is(err, lock.ErrLost):
		r.say("warning: %q: the lock was lost before the release: another command may have run at the same time; fence %d", r.Key, lk.Lease().Fence)
	case err != nil:
		r.say("warning: %q was not released: %s; it is free when the lease ends at %s", r.Key, console.Plain(err), inspect.Stamp(lk.Lease().Until))
	}
	return status
}

// complete records the event. A record that the store did not confirm may have
// been applied, or may be still.
func (r *guardedRun) complete(lk *lock.Lock) console.ExitStatus {
	switch err := lk.Complete(); {
	case err == nil:
		return 0
	case errors.Is(err, lock.ErrLost):
		r.say("warning: %q: the lock was lost before the release: the event counts as not run, and will run again", r.Key)
	default:
		r.say("warning: %q: the event %q was perhaps not recorded, and may run again: %s", r.Key, *r.Event, console.Plain(err))
	}
	return console.ExitStatus(r.UnsureExitCode)
}
