package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

var (
	// ErrHeld says that another invocation holds the name. [*HeldError] has the
	// details.
	ErrHeld = errors.New("lambdalock: held")
	// ErrCompleted says that the event was already completed, or is stale.
	// [*CompletedError] has the details.
	ErrCompleted = errors.New("lambdalock: completed")
	// ErrLost says that the lease ended, or was taken over, before the work ended.
	// [*LostError] has the details.
	ErrLost = errors.New("lambdalock: lost")
	// ErrReleased says that [Lock.Complete] was called after [Lock.Release]. The
	// event does not count as completed and will run again.
	ErrReleased = errors.New("lambdalock: released already, so the event cannot be completed")
	// ErrUnknown is for work to wrap in its error if it cannot tell whether it has
	// had its effect, for example because a request that it sent was not answered.
	// With [Options.OnInterrupted], the event then counts as interrupted.
	ErrUnknown = errors.New("lambdalock: it is not known whether the work was done")
)

// HeldError says who holds the name: after [Locker.AcquireOneOf], the holder
// whose lease ends first. AWS Lambda reports it as errorType "HeldError".
type HeldError struct {
	Key    Key
	Holder string // as the holder describes itself; empty if the store did not say
	// Since is when the holder acquired the name, by its own clock or, on Redis,
	// the server's. Zero if unknown.
	Since time.Time
	Until time.Time // when the lease ends if the holder dies; zero if unknown
	// Duplicate reports whether the holder works on the same event. That event is
	// not completed yet, so do not acknowledge it: if the holder fails, the source
	// must deliver it again.
	Duplicate bool
	// Cooldown reports whether the holder's work has ended, and the name stays held
	// until Until because of its [Options.HoldAtLeast].
	Cooldown bool
	Limit    int // of [Locker.AcquireOneOf]: so many invocations hold the name; 0: one does
	// Cause is why a wait ended early: the context's cause, or a deadline that is
	// near. Nil if MaxWait is zero, or was itself too short.
	Cause error
	// Err is the answer of a service that locks the resource itself, such as Azure
	// a blob (package bloblease). Nil for the locks of a [Locker].
	Err error
}

// Error implements error.
func (e *HeldError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("lambdalock: key %s is held by another: %v", e.Key.Digest(), e.Err)
	}
	what := "another event"
	switch {
	case e.Duplicate:
		what = "a delivery of the same event"
	case e.Key.Event == "":
		what = "another invocation"
	}
	if e.Limit > 1 {
		what = fmt.Sprintf("%d other invocations, as many as its limit allows", e.Limit)
	}
	switch {
	case e.Cooldown:
		return fmt.Sprintf("lambdalock: key %s stays held until %s, because of the HoldAtLeast of its last holder", e.Key.Digest(), e.Until.UTC().Format(time.RFC3339))
	case e.Holder == "":
		return fmt.Sprintf("lambdalock: key %s is held by %s", e.Key.Digest(), what)
	case e.Limit > 1:
		what += ", one of them"
	}
	return fmt.Sprintf("lambdalock: key %s is held by %s in %q until %s at the latest",
		e.Key.Digest(), what, e.Holder, e.Until.UTC().Format(time.RFC3339))
}

// Unwrap returns [ErrHeld], and those of Cause and Err that there are.
func (e *HeldError) Unwrap() []error { return known(ErrHeld, e.Cause, e.Err) }

// known returns the errors that are not nil.
func known(errs ...error) []error {
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// CompletedError says that nothing is left to do for the event.
type CompletedError struct {
	Key Key
	// Stale reports whether the event is stale: it was not completed itself, but
	// one with the same or a later Order was.
	Stale bool
	// Result is what the first run gave to [Lock.Complete]. Nil if it gave none, if
	// that was too large, if a later event of the same name has replaced it, or if
	// only one of the two keys has a [Key.Payload].
	Result []byte
}

// Error implements error.
func (e *CompletedError) Error() string {
	if e.Stale {
		return fmt.Sprintf("lambdalock: key %s: a later event was already completed", e.Key.Digest())
	}
	return fmt.Sprintf("lambdalock: key %s: this event was already completed", e.Key.Digest())
}

// Unwrap returns [ErrCompleted].
func (e *CompletedError) Unwrap() error { return ErrCompleted }

// PayloadMismatchError says that the event was completed, or is being worked
// on, with another [Key.Payload]: the caller has used one event identity for
// two different things. Nothing was done for the second one, and repeating it
// will not help. AWS Lambda reports it as errorType "PayloadMismatchError".
type PayloadMismatchError struct {
	Key Key
}

// Error implements error.
func (e *PayloadMismatchError) Error() string {
	return fmt.Sprintf("lambdalock: key %s: this event came before with another payload, such as another request or other credentials: let the sender give every new event an identity of its own, and repeat one unchanged", e.Key.Digest())
}

// InterruptedError says that an earlier run of the event was interrupted:
// nothing is known of its end. If Acquire returns it, as with
// [FailInterrupted], nothing runs for the event until somebody decides, for
// example with the command lambdalock complete or lambdalock forget. AWS Lambda
// reports it as errorType "InterruptedError".
type InterruptedError struct {
	Key    Key
	Holder string // of that run, as it described itself
	// Since is when that run acquired the name, by its own clock, or when a claim
	// of another event was given up after that.
	Since time.Time
}

// Error implements error.
func (e *InterruptedError) Error() string {
	return fmt.Sprintf("lambdalock: key %s: a run of this event in %q, which began at %s, was interrupted, and it is not known whether its work was done: OnInterrupted decides; with Fail, find out, and then complete the event or forget it",
		e.Key.Digest(), e.Holder, e.Since.UTC().Format(time.RFC3339))
}

// DeadlineError says that too little time is left before the context's deadline
// to do any work and release the lock. The store was not asked, unless the work
// of [Locker.Latest] has to run once more. AWS Lambda reports it as errorType
// "DeadlineError".
type DeadlineError struct {
	Left time.Duration // time left until the deadline
	Need time.Duration // the least time to run and to release; of Latest: what the last run took

	again bool // another run is needed
}

// Error implements error.
func (e *DeadlineError) Error() string {
	if e.again {
		return fmt.Sprintf("lambdalock: other events came during the work, which has to run once more and took %v, and %v are left: the source has to deliver the event again; give the function, or its lease, the time for three runs",
			e.Need.Round(time.Millisecond), e.Left.Round(time.Millisecond))
	}
	return fmt.Sprintf("lambdalock: %v are left before the deadline, and at least %v are needed to run and to release the lock: raise the function's timeout, or lower Reserve",
		e.Left.Round(time.Millisecond), e.Need.Round(time.Millisecond))
}

// Unwrap returns [context.DeadlineExceeded].
func (e *DeadlineError) Unwrap() error { return context.DeadlineExceeded }

// LostError says that the lease can no longer be relied on. It is the cause
// with which the work's context ends. [Lock.Complete] returns it if the name is
// another's by then; as long as nobody has taken it over, even a late Complete
// completes the event, except on a quorum of Redis servers.
type LostError struct {
	Key   Key
	Until time.Time // end of the last lease that was confirmed
	Err   error     // as in [HeldError], or why there was no answer
}

// Error implements error.
func (e *LostError) Error() string {
	s := fmt.Sprintf("lambdalock: key %s: the lease until %s is lost",
		e.Key.Digest(), e.Until.UTC().Format(time.RFC3339Nano))
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns [ErrLost] and, if there is one, Err.
func (e *LostError) Unwrap() []error { return known(ErrLost, e.Err) }

// StoreError says that the store did not answer, or refused to. It says nothing
// about the lock. If the caller's context had already ended, nothing was sent:
// Requests is 0, and Err is the context's error. AWS Lambda reports it as
// errorType "StoreError".
type StoreError struct {
	Op     string // acquire, renew, complete, release or check; coalesce: a request for one more run
	Store  string // what was asked, for example "DynamoDB table orders-locks"
	Action string // the AWS action that was denied, for example "dynamodb:UpdateItem"; otherwise empty
	Hint   string // what to change, if that is known

	// Temporary reports whether a later try may succeed. It is true unless the
	// store knows that the refusal lasts.
	Temporary bool
	// Answered reports whether the store itself answered, with a refusal. False:
	// there was no answer, or nothing was sent.
	Answered bool
	// Unapplied reports whether nothing was applied and nothing still can be: each
	// request was refused by the store or never sent.
	Unapplied bool

	Requests int   // how many requests were sent for this operation
	Err      error // what the client reported
}

// storeError returns a store's error as callers see it.
func storeError(op string, requests int, e *driver.Error) *StoreError {
	return &StoreError{
		Op: op, Store: e.Store, Action: e.Action, Hint: e.Hint,
		Temporary: !e.Lasting, Answered: e.Answered, Unapplied: e.Unapplied, Requests: requests, Err: e.Err,
	}
}

// Error implements error.
func (e *StoreError) Error() string {
	s := "lambdalock: " + e.Op
	if e.Store != "" {
		s += " at " + e.Store
	}
	if e.Action != "" {
		s += ": " + e.Action + " was denied"
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Unwrap returns the client's error.
func (e *StoreError) Unwrap() error { return e.Err }

// NoKeyError says that an event has no usable key, so its handler does not run.
type NoKeyError struct {
	Field  string // where in the event, such as "Records[0].s3.object.key"; empty: all of it
	Reason string // what is wrong with it and what to change; if Client, the client reads it
	Err    error  // what the parser reported, or what to change in the code; may be nil
	// Client reports whether the sender of the request can correct the mistake.
	// Package middleware then answers an HTTP request with status 400. If false,
	// the mistake is the operator's, such as an event from another source, and the
	// invocation fails so that alarms see it.
	Client bool
	// Missing reports whether the field is absent. A field that is there but has no
	// usable value, such as an empty one, is not missing.
	Missing bool
}

// Error implements error.
func (e *NoKeyError) Error() string {
	s := "lambdalock: no key: " + cmp.Or(e.Field, "the event") + " " + e.Reason
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns Err. A nil e, which a key function may return by mistake, has
// none.
func (e *NoKeyError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// ConfigError says which setting is wrong and what to change.
type ConfigError = driver.ConfigError

// reported returns what the store reported. An error that the store did not
// classify may be anything.
func reported(err error) *driver.Error {
	if e := (*driver.Error)(nil); errors.As(err, &e) {
		return e
	}
	return &driver.Error{Err: err}
}
