package middleware

import "time"

// HeldPolicy says what to do with an event whose lock another invocation holds:
// [Fail], [Skip], [Wait] or [Respond].
type HeldPolicy interface{ forHeld() policy }

// CompletedPolicy says what to do with an event that was already completed, or is
// stale: [Skip], [Fail] or [Replay].
type CompletedPolicy interface{ forCompleted() policy }

// Policy is both a [HeldPolicy] and a [CompletedPolicy].
type Policy int

const (
	// Fail returns the error that says why the handler did not run, so that the
	// source delivers the event again.
	Fail Policy = iota
	// Skip returns the zero result and no error: the event is acknowledged. For a
	// lock that is held, this gives up an event that nobody may complete: if the
	// holder dies, or works on another event, this one is lost.
	Skip
)

type replayPolicy int

// Replay is a [CompletedPolicy] that returns the result of the first run. That is
// stored for as long as the event is the last completed one of its name. If there is
// none, because it was too large, could not be encoded, or was replaced, Replay does
// the same as [Skip]. A key without an Event has no duplicates to tell: each delivery
// runs, and one warning is logged.
const Replay replayPolicy = 0

// Wait asks again until the lock is released, for at most that long (at least 1 ms;
// zero does not wait) and never so long that the handler would not have time to run.
// Then it does the same as [Fail]. Waiting is billed like working.
func Wait(atMost time.Duration) HeldPolicy {
	return heldPolicy{kind: fail, wait: atMost}
}

// Respond returns v, which must be assignable to the handler's result type, and no
// error. It is for synchronous callers who should hear that the work is under way.
// Like [Skip] it acknowledges the event. Every such caller gets the same v, so v
// cannot be a stream.
func Respond(v any) HeldPolicy {
	return heldPolicy{kind: respond, value: v}
}

type kind int

const (
	fail kind = iota
	skip
	respond
	replay
)

type policy struct {
	kind  kind
	wait  time.Duration
	value any
}

type heldPolicy policy

func (p heldPolicy) forHeld() policy { return policy(p) }

func (p Policy) forHeld() policy      { return p.policy() }
func (p Policy) forCompleted() policy { return p.policy() }

func (p Policy) policy() policy {
	switch p {
	case Fail:
		return policy{kind: fail}
	case Skip:
		return policy{kind: skip}
	}
	panic("lambdalock: this Policy is neither Fail nor Skip")
}

func (replayPolicy) forCompleted() policy { return policy{kind: replay} }
