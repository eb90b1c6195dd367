package lock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrHeld says that somebody else owns the name now. Facts in [*HeldError].
	ErrHeld = errors.New("lambdalock: held")
	// ErrDone says that the event was already completed, or overtaken. Facts in [*DoneError].
	ErrDone = errors.New("lambdalock: done")
	// ErrLost says that the lease ended or was taken before the work did. Facts in [*LostError].
	ErrLost = errors.New("lambdalock: lost")
	// ErrReleased says that [Lock.Complete] came after [Lock.Release]: nothing is
	// recorded, and the event will run again.
	ErrReleased = errors.New("lambdalock: released already, so nothing is recorded")
)

// HeldError says who holds the name. AWS Lambda reports it as errorType
// "HeldError".
type HeldError struct {
	Key    Key
	Holder string // as the holder described itself; empty when the store did not tell
	// Since is when it was acquired, by the holder's clock, or when somebody else gave up
	// a claim after that; zero when unknown.
	Since time.Time
	Until time.Time // when its lease ends if the holder dies; zero when unknown
	// Duplicate: the holder works on the same event. It is not done yet, so the
	// event must not be acknowledged: the source redelivers it, and finds it done.
	Duplicate bool
	// Cause is why waiting ended early: the context's cause, or its deadline
	// being near. Nil when there was no wait, or it lasted as long as allowed.
	Cause error
}

func (e *HeldError) Error() string {
	what := "another event"
	if e.Duplicate {
		what = "a delivery of the same event"
	}
	if e.Holder == "" {
		return fmt.Sprintf("lambdalock: key %s is held by %s", e.Key.Digest(), what)
	}
	return fmt.Sprintf("lambdalock: key %s is held by %s in %q until %s at the latest",
		e.Key.Digest(), what, e.Holder, e.Until.UTC().Format(time.RFC3339))
}

// Unwrap makes the error answer to [ErrHeld] and, when a wait was cut short, to
// the context's cause.
func (e *HeldError) Unwrap() []error {
	if e.Cause == nil {
		return []error{ErrHeld}
	}
	return []error{ErrHeld, e.Cause}
}

// DoneError says that there is nothing left to do for the event.
type DoneError struct {
	Key Key
	// Stale: the event itself was not recorded, but one with the same or a later
	// Order was.
	Stale bool
	// Result is what the first run recorded for replay; nil when it recorded
	// none, or a later event of the same name has replaced it.
	Result []byte
}

func (e *DoneError) Error() string {
	if e.Stale {
		return fmt.Sprintf("lambdalock: key %s: a later event was already completed", e.Key.Digest())
	}
	return fmt.Sprintf("lambdalock: key %s: this event was already completed", e.Key.Digest())
}

// Unwrap makes the error answer to [ErrDone].
func (e *DoneError) Unwrap() error { return ErrDone }

// DeadlineError says that too little time is left before the deadline of the context
// to take the lock, work, and release it. Nothing was asked of the store. AWS Lambda
// reports it as errorType "DeadlineError".
type DeadlineError struct {
	Left time.Duration // until the deadline
	Need time.Duration // to run and to release, at least
}

func (e *DeadlineError) Error() string {
	return fmt.Sprintf("lambdalock: %v are left before the deadline, and at least %v are needed to run and to release the lock: raise the function's timeout, or lower Reserve",
		e.Left.Round(time.Millisecond), e.Need.Round(time.Millisecond))
}

// Unwrap makes the error answer to [context.DeadlineExceeded].
func (e *DeadlineError) Unwrap() error { return context.DeadlineExceeded }

// LostError is the cause with which the context of the work ends when its lease
// can no longer be relied on, and what [Lock.Complete] returns afterwards.
type LostError struct {
	Key   Key
	Until time.Time // end of the last lease that was confirmed
}

func (e *LostError) Error() string {
	return fmt.Sprintf("lambdalock: key %s: the lease that ended at %s is lost",
		e.Key.Digest(), e.Until.UTC().Format(time.RFC3339Nano))
}

// Unwrap makes the error answer to [ErrLost].
func (e *LostError) Unwrap() error { return ErrLost }

// StoreError says that the store did not answer, or refused to. It is never a
// statement about the lock.
type StoreError struct {
	Op     string // acquire, renew, release or check; set by the engine
	Store  string // what was asked, for example "DynamoDB table orders-locks"
	Action string // the AWS action that was denied, for example "dynamodb:UpdateItem"; else empty
	Hint   string // what to change, when that is known

	// Temporary: a later try may succeed (throttled, conflict, broken connection).
	Temporary bool
	// Rejected: the store answered, and applied nothing. False means that the
	// request may have been applied. Temporary and Rejected together mean that the
	// store is asked for more than it takes, unless Conflict is set.
	Rejected bool
	// Conflict: another write of the same row was under way. It is worth asking again
	// at once.
	Conflict bool

	Requests int   // how many requests were sent for this operation
	Err      error // what the client reported
}

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

// KeyError says that an event gives no usable key. The handler does not run.
type KeyError struct {
	Field  string // where in the event, for example "Records[0].s3.object.key"
	Reason string // what is wrong with it, and what to change
	Err    error  // what the parser reported; may be nil
	// Client: the sender of the request can mend it, so that a handler of HTTP
	// requests answers 400. False: the operator's mistake, such as an event of
	// another source, which must stay an error for the alarms to see.
	Client bool
}

func (e *KeyError) Error() string {
	s := "lambdalock: no key: " + e.Field + " " + e.Reason
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the parser's error.
func (e *KeyError) Unwrap() error { return e.Err }

// ConfigError says which setting is wrong and what to change.
type ConfigError struct {
	Reason string
	Err    error // what caused it; may be nil
}

func (e *ConfigError) Error() string {
	if e.Err != nil {
		return "lambdalock: " + e.Reason + ": " + e.Err.Error()
	}
	return "lambdalock: " + e.Reason
}

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.Err }
