package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/lambdalock/lambdalock/lock"
)

// end releases the lock, or completes the event, and returns the status. The
// command's stays even if that fails, unless another one is asked for: the work
// was done, or was not.
func (r *guardedRun) end(lk *lock.Lock, status exitStatus) exitStatus {
	if r.Event != nil && status == 0 {
		return r.complete(lk)
	}
	switch err := lk.Release(); {
	case errors.Is(err, lock.ErrLost):
		say("warning: %q: the lock was lost before the release: another command may have run at the same time; fence %d", r.Key, lk.Lease().Fence)
	case err != nil:
		say("warning: %q was not released: %s; it is free when the lease ends at %s", r.Key, plain(err), lk.Lease().Until.Local().Format(time.RFC3339))
	}
	return status
}

// complete records the event. A record that the store did not confirm may have
// been applied, or may be still.
func (r *guardedRun) complete(lk *lock.Lock) exitStatus {
	switch err := lk.Complete(); {
	case err == nil:
		return 0
	case errors.Is(err, lock.ErrLost):
		say("warning: %q: the lock was lost before the release: the event counts as not run, and will run again", r.Key)
	default:
		say("warning: %q: the event %q was perhaps not recorded, and may run again: %s", r.Key, *r.Event, plain(err))
	}
	return exitStatus(r.UnsureExitCode)
}

// exitStatus ends the program. What there is to say has been said.
type exitStatus int

func (s exitStatus) Error() string { return "exit status " + strconv.Itoa(int(s)) }

// fail prints one line and returns the status.
func fail(status int, format string, args ...any) error {
	say(format, args...)
	return exitStatus(status)
}

// say prints one line.
func say(format string, args ...any) {
	fmt.Fprintln(os.Stderr, "lambdalock:", printable(fmt.Sprintf(format, args...)))
}

// plain is an error's text for a line that begins with our name already. The
// errors that it wraps begin with the name too.
func plain(err error) string {
	return strings.TrimPrefix(strings.ReplaceAll(err.Error(), ": lambdalock: ", ": "), "lambdalock: ")
}

// printable keeps what others wrote from breaking the line or the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, text)
}
