package lawful_test

import (
	"errors"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/lawful"
	"github.com/lambdalock/lambdalock/lock"
)

// TestCheck shows that each rule can be broken.
func TestCheck(t *testing.T) {
	t.Parallel()
	now := time.Now()
	of := func(outcome lock.Outcome, op string, err error) lock.Observation {
		return lock.Observation{Outcome: outcome, Op: op, Began: now, Duration: time.Second, Fence: 1, Until: now, Requests: 1, Err: err}
	}
	boom, held := errors.New("boom"), &lock.HeldError{Holder: "a", Until: now}
	acquired, refused := of(lock.OutcomeAcquired, "acquire", nil), of(lock.OutcomeHeld, "acquire", held)
	refused.Holder = "a"
	for _, o := range []lock.Observation{acquired, refused} {
		if err := lawful.Check(o); err != nil {
			t.Error(err)
		}
	}
	for name, c := range map[string]struct {
		o     lock.Observation
		spoil func(o *lock.Observation)
	}{
		"outcome":    {acquired, func(o *lock.Observation) { o.Outcome = "other" }},
		"operation":  {acquired, func(o *lock.Observation) { o.Op = "renew" }},
		"an error":   {acquired, func(o *lock.Observation) { o.Err = boom }},
		"no error":   {refused, func(o *lock.Observation) { o.Err = nil }},
		"its error":  {refused, func(o *lock.Observation) { o.Err = boom }},
		"no begin":   {acquired, func(o *lock.Observation) { o.Began = time.Time{} }},
		"long wait":  {acquired, func(o *lock.Observation) { o.Waited = time.Minute }},
		"held for":   {acquired, func(o *lock.Observation) { o.HeldFor = 1 }},
		"requests":   {acquired, func(o *lock.Observation) { o.Requests = -1 }},
		"fence":      {acquired, func(o *lock.Observation) { o.Fence = 0 }},
		"completed":  {acquired, func(o *lock.Observation) { o.Completed = true }},
		"forgotten":  {acquired, func(o *lock.Observation) { o.Forgotten = 1 }},
		"records":    {acquired, func(o *lock.Observation) { o.Records = 1 }},
		"a holder":   {acquired, func(o *lock.Observation) { o.Holder = "a" }},
		"nobody":     {acquired, func(o *lock.Observation) { o.Outcome = lock.OutcomeTakenOver }},
		"duplicate":  {acquired, func(o *lock.Observation) { o.Duplicate = true }},
		"its wait":   {of(lock.OutcomeReleased, "release", nil), func(o *lock.Observation) { o.Waited = 1 }},
		"its holder": {refused, func(o *lock.Observation) { o.Holder = "b" }},
		"its end":    {refused, func(o *lock.Observation) { o.Until = now.Add(1) }},
		"its event":  {refused, func(o *lock.Observation) { o.Duplicate = true }},
	} {
		if c.spoil(&c.o); lawful.Check(c.o) == nil {
			t.Errorf("%s: nothing is wrong with %+v", name, c.o)
		}
	}
}
