package middleware

import "time"

// HeldPolicy says what to do with an event whose lock somebody else holds: [Skip],
// [Fail], [Wait] or [Respond].
type HeldPolicy interface{ forHeld() policy }

// DonePolicy says what to do with an event that was already completed, or
// overtaken: [Skip], [Fail] or [Replay].
type DonePolicy interface{ forDone() policy }

// Policy is both a [HeldPolicy] and a [DonePolicy].
type Policy struct{ policy }

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

func (p Policy) forHeld() policy { return p.policy }
func (p Policy) forDone() policy { return p.policy }

type heldPolicy struct{ policy }

func (p heldPolicy) forHeld() policy { return p.policy }

type donePolicy struct{ policy }

func (p donePolicy) forDone() policy { return p.policy }

var (
	// Skip returns the zero result and no error: the event is acknowledged. On a
	// lock that is held this gives up an event that nobody may complete: if the
	// holder dies, or works on another event, this one is lost.
	Skip = Policy{policy{kind: skip}}
	// Fail returns the error that says why the handler did not run, so that the
	// source delivers the event again.
	Fail = Policy{policy{kind: fail}}
	// Replay returns the result of the first run, which is stored for as long as
	// the event is the last completed one of its name. Where there is none (it was
	// too large, could not be encoded, or was replaced), it does as Skip. A key without
	// an Event tells no duplicates: each of them runs, and one warning is logged.
	Replay DonePolicy = donePolicy{policy{kind: replay}}
)

// Wait asks again until the lock is free, for at most that long (at least 1 ms; zero does
// not wait) and never so long that the handler would not have time to run; then it does
// as Fail. Waiting is billed like working.
func Wait(atMost time.Duration) HeldPolicy {
	return heldPolicy{policy{kind: fail, wait: atMost}}
}

// Respond returns v, which must be assignable to the handler's result type, and no
// error: for synchronous callers who should hear that the work is under way. Like
// Skip it acknowledges the event. Every such caller gets the same v, so it cannot be
// a stream.
func Respond(v any) HeldPolicy {
	return heldPolicy{policy{kind: respond, value: v}}
}
