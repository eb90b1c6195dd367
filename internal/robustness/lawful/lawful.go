// Package lawful checks that what package lock tells an observer agrees with
// itself: each outcome has the fields that tell of it, and no others.
package lawful

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lambdalock/lambdalock/lock"
)

// law says of an outcome which operations end with it, and what is known then.
type law struct {
	ops    string               // those that [lock.Observation.Op] may be; "-": none
	reason func(err error) bool // what Err is; nil: there is none
	mayNot bool                 // there may be no Err
	held   bool                 // by us, so that there are a fence and an end of the lease
	other  bool                 // another holder has a part in it
}

const notBegun lock.Outcome = "not_begun"

var laws = map[lock.Outcome]law{
	lock.OutcomeAcquired:         {ops: "acquire", held: true},
	lock.OutcomeTakenOver:        {ops: "acquire", held: true, other: true},
	lock.OutcomeRequeued:         {ops: "acquire", reason: some},
	lock.OutcomeHeld:             {ops: "acquire", reason: as[*lock.HeldError], other: true},
	lock.OutcomeCoalesced:        {ops: "acquire -", reason: some, mayNot: true, other: true},
	lock.OutcomeAlreadyCompleted: {ops: "acquire", reason: completed(false)},
	lock.OutcomeStale:            {ops: "acquire", reason: completed(true)},
	lock.OutcomeMismatch:         {ops: "acquire -", reason: as[*lock.PayloadMismatchError]},
	lock.OutcomeInterrupted:      {ops: "-", reason: as[*lock.InterruptedError], held: true},
	lock.OutcomeRenewed:          {ops: "renew", reason: some, mayNot: true, held: true},
	lock.OutcomeLost:             {ops: "acquire renew complete release", reason: as[*lock.LostError]},
	lock.OutcomeReleased:         {ops: "complete release", held: true},
	lock.OutcomeCompleteFailed:   {ops: "complete release", reason: some, held: true},
	lock.OutcomeResultDropped:    {ops: "-", reason: some, mayNot: true},
	lock.OutcomeForgotten:        {ops: "-", held: true},
	lock.OutcomeStoreFailed:      {ops: "acquire renew release", reason: some},
	lock.OutcomeRefused:          {ops: "acquire -", reason: some},

	// Those of package middleware, which is not imported, because the modules of
	// the stores would then need all that it needs.
	"unlocked":       {ops: "-", reason: some},
	"no_lock":        {ops: "-"},
	"ignored":        {ops: "-", reason: some},
	"handler_failed": {ops: "-", reason: some},
	notBegun:         {ops: "-", reason: some, mayNot: true},
	"overdue":        {ops: "-", reason: some, mayNot: true}, // perhaps without a lock
}

func some(error) bool { return true }

func as[E error](err error) bool { return errors.As(err, new(E)) }

func completed(stale bool) func(error) bool {
	return func(err error) bool {
		var e *lock.CompletedError
		return errors.As(err, &e) && e.Stale == stale
	}
}

// Check returns what is wrong with an observation, or nil.
func Check(o lock.Observation) error {
	l, known := laws[o.Outcome]
	var held *lock.HeldError
	_ = errors.As(o.Err, &held)
	var wrong []string
	rule := func(broken bool, what string) {
		if broken {
			wrong = append(wrong, what)
		}
	}
	rule(!known, "the outcome is unknown")
	rule(!slices.Contains(strings.Fields(l.ops), cmp.Or(o.Op, "-")), "the operation has no such end")
	rule(l.reason == nil && o.Err != nil, "it has an error")
	rule(l.reason != nil && !l.mayNot && o.Err == nil, "it has no error")
	rule(l.reason != nil && o.Err != nil && !l.reason(o.Err), "its error is of another outcome")
	rule(o.Op != "" && o.Began.IsZero(), "it did not begin")
	rule(o.Waited < 0 || o.Waited > o.Duration, "it waited for longer than it took")
	rule(o.Waited != 0 && o.Op != "acquire", "it waited although it had the lock")
	rule(o.HeldFor < 0 || o.HeldFor != 0 && o.Op == "acquire", "it was held before it was acquired")
	rule(o.Requests < 0 || o.Requests > 0 && o.Op == "", "it counts requests that it cannot have sent")
	rule(l.held && (o.Fence <= 0 || o.Until.IsZero()), "it has no fence, or no end of a lease")
	rule(o.Completed != (o.Outcome == lock.OutcomeReleased && o.Op == "complete"), "it says wrongly whether the event is completed")
	rule((o.Forgotten != 0) != (o.Outcome == lock.OutcomeForgotten), "it says wrongly that events are forgotten")
	rule((o.Records != 0) != (o.Outcome == notBegun), "it says wrongly how many did not begin")
	rule(o.Holder != "" && !l.other, "it has another holder")
	rule(o.Outcome == lock.OutcomeTakenOver && o.Holder == "", "it was taken over from nobody")
	rule(o.Duplicate && o.Outcome != lock.OutcomeHeld, "it is held by its own duplicate")
	rule(o.Outcome == lock.OutcomeHeld && held != nil &&
		(o.Holder != held.Holder || !o.Until.Equal(held.Until) || o.Duplicate != held.Duplicate || o.Key.Name != held.Key.Name), "its error says something else")
	if wrong == nil {
		return nil
	}
	return fmt.Errorf("%s: observed %+v", strings.Join(wrong, ", "), o)
}
