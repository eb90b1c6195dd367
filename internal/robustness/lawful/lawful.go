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
	"overdue":        {ops: "-", reason: some, mayNot: true, held: true},
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
	for what, is := range map[string]bool{
		"the outcome is unknown":                         !known,
		"the operation has no such end":                  !slices.Contains(strings.Fields(l.ops), cmp.Or(o.Op, "-")),
		"it has an error":                                l.reason == nil && o.Err != nil,
		"it has no error":                                l.reason != nil && !l.mayNot && o.Err == nil,
		"its error is of another outcome":                l.reason != nil && o.Err != nil && !l.reason(o.Err),
		"it did not begin":                               o.Op != "" && o.Began.IsZero(),
		"it waited for longer than it took":              o.Waited < 0 || o.Waited > o.Duration,
		"it waited although it had the lock":             o.Waited != 0 && o.Op != "acquire",
		"it was held before it was acquired":             o.HeldFor < 0 || o.HeldFor != 0 && o.Op == "acquire",
		"it counts requests that it cannot have sent":    o.Requests < 0 || o.Requests > 0 && o.Op == "",
		"it has no fence, or no end of a lease":          l.held && (o.Fence <= 0 || o.Until.IsZero()),
		"it says wrongly whether the event is completed": o.Completed != (o.Outcome == lock.OutcomeReleased && o.Op == "complete"),
		"it says wrongly that events are forgotten":      (o.Forgotten != 0) != (o.Outcome == lock.OutcomeForgotten),
		"it says wrongly how many did not begin":         (o.Records != 0) != (o.Outcome == notBegun),
		"it has another holder":                          o.Holder != "" && !l.other,
		"it was taken over from nobody":                  o.Outcome == lock.OutcomeTakenOver && o.Holder == "",
		"it is held by its own duplicate":                o.Duplicate && o.Outcome != lock.OutcomeHeld,
		"its error says something else": o.Outcome == lock.OutcomeHeld && held != nil &&
			(o.Holder != held.Holder || !o.Until.Equal(held.Until) || o.Duplicate != held.Duplicate || o.Key.Name != held.Key.Name),
	} {
		if is {
			wrong = append(wrong, what)
		}
	}
	if wrong == nil {
		return nil
	}
	slices.Sort(wrong)
	return fmt.Errorf("%s: observed %+v", strings.Join(wrong, ", "), o)
}
