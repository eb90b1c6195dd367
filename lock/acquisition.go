package lock

import (
	"context"
	"errors"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/event/stored"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// claimState is a claim for one row, and what came of it. A lock goes on with
// that of its acquisition.
type claimState struct {
	locker  *Locker
	ctx     context.Context // the caller's
	clock   clock.Clock
	key     Key
	timing  timing
	claim   driver.Claim
	row     driver.Row // the last one seen: that of a lock as it was acquired
	dated   time.Time  // when the claim was dated, by both clocks
	decided time.Time
}

// acquisition acquires one row for one key.
type acquisition struct {
	claimState
	after    *hold     // acquired before by the same call; nil: none
	called   time.Time // when that call began
	floor    time.Time // the next stamp must be above it
	requests retries
	share    time.Time // until when this slot may be asked, because there are others; zero: there are none
	began    time.Time
	waited   time.Duration
}

func (l *Locker) newAcquisition(ctx context.Context, key Key) acquisition {
	c := clock.From(ctx)
	now := c.Now()
	a := acquisition{
		claimState: claimState{locker: l, ctx: ctx, clock: c, key: key}, called: now, began: now,
		requests: retries{locker: l, clock: c, onThrottle: (*Locker).claimGivesUp},
	}
	if r, ofRecord := invocation.RecordClaimOf(ctx); r != nil {
		a.requests.pace = r.Pace
		a.requests.onThrottle = func(*Locker, int) bool {
			r.Throttled = true
			return true
		}
	} else if ofRecord { // which has begun, and must not begin again
		a.requests.onThrottle = nil
	}
	return a
}

// try asks for the name, and asks again immediately if the refusal does not
// mean that another holder has it. It reports whether the name was granted.
func (a *acquisition) try() (bool, error) {
	for asked := 0; ; asked++ {
		a.dateClaim()
		granted, err := a.ask()
		if granted || err != nil {
			return granted, err
		}
		switch a.verdict() {
		case driver.Completed:
			return false, a.completedError()
		case driver.Stale:
			return false, &CompletedError{Key: a.key, Stale: true}
		case driver.Newer:
			return false, a.newerError()
		case driver.Held:
			return false, a.refusedByHolder()
		case driver.Behind:
			// Our clock is behind the last owner's, or another claim was given up since. We
			// have seen that the name has no holder, so this claim is not a late copy:
			// raise its stamp instead of waiting until our clock has caught up.
			a.floor = later(a.floor, a.row.Stamp)
			if asked == 3 || !a.clock.Now().Before(a.askUntil()) {
				return false, nil
			}
		case driver.Granted:
			// The store judged by its own clock or saw an earlier state: ask again.
			if asked == 3 || a.clock.Sleep(a.ctx, clock.Jitter(a.clock, firstPause<<asked)) != nil || !a.clock.Now().Before(a.askUntil()) {
				return false, nil
			}
		}
	}
}

// refusedByHolder returns why it makes no sense to wait for the holder, or nil.
func (a *acquisition) refusedByHolder() error {
	switch {
	case a.row.Event == a.claim.Event && mismatch(a.row.Payload, &a.claim):
		return &PayloadMismatchError{Key: a.key}
	case a.heldByUs():
		return a.nestedError()
	}
	return nil
}

func (a *acquisition) prepare() error {
	if err := a.key.check(); err != nil {
		return err
	}
	var err error
	if a.after != nil {
		a.timing, err = a.after.timing.at(a.began) // one reserve for the whole call
	} else {
		a.timing, err = a.locker.timing(a.ctx, a.began)
	}
	if err != nil {
		return err
	}
	a.claim = driver.Claim{
		Name:   stored.Name(a.locker.prefix, a.key.Name),
		Event:  stored.Event(a.key.Event),
		Order:  a.key.Order,
		Holder: a.locker.opts.Holder(a.ctx),
	}
	a.claim.Token = a.clock.Text()
	if a.key.Event != "" {
		a.claim.Payload = stored.Payload(a.key.Payload)
		if a.locker.opts.OnInterrupted != nil {
			a.claim.InterruptedFor = a.locker.remember(a.ctx).Truncate(time.Millisecond)
		}
	}
	// The row that refuses does not tell, because it may be another one. If every
	// invocation held one row of a name while it waited for a second one, none
	// would end.
	if a.isWithin(func(outer *hold) bool {
		return outer.claim.Name != a.claim.Name && outer.hasName(a.locker, a.claim.Name)
	}) {
		return a.nestedError()
	}
	return nil
}

// heldByUs reports whether a surrounding call holds the name: to wait for that
// call would be to wait until the deadline.
func (a *acquisition) heldByUs() bool {
	return a.isWithin(func(outer *hold) bool { return outer.claim.Token == a.row.Token })
}

// isWithin reports whether a surrounding call has a lock that is one of those
// and has not ended.
func (a *acquisition) isWithin(those func(*hold) bool) bool {
	for outer := heldIn(a.ctx); outer != nil; outer = outer.outer {
		if !outer.end.hasBegun() && those(outer) {
			return true
		}
	}
	return false
}

func (a *acquisition) nestedError() error {
	return &ConfigError{Reason: "key " + a.key.Digest() + " is already held by this invocation: nested wrappers need different names, for example through keyfuncs.Prefix"}
}

// dateClaim dates the claim of a round. Within a round, a claim without an
// answer is sent again unchanged, so that its copies cannot outlive it. In the
// next one it gets a new date and a higher stamp, so that copies of an earlier
// round can never undo those of a later one.
func (a *acquisition) dateClaim() {
	a.floor = later(a.floor, a.claim.Stamp)
	before := a.claim.Until
	a.dated = a.clock.Now()
	a.claim.Now = a.dated.Round(0).Truncate(time.Microsecond)
	a.claim.Stamp = later(a.locker.nextStamp(a.claim.Now), a.floor.Add(time.Microsecond))
	a.claim.Until = a.locker.leaseEnd(a.timing, a.claim.Now)
	// If the clock was set back, a copy of an earlier round may have been granted a
	// lease that ends later than this claim's. That row would refuse this claim and
	// keep its own stamp.
	a.claim.Until = later(a.claim.Until, before)
	a.claim.DeleteAfter = keepHeld(a.claim.Until)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// ask sends the claim.
func (a *acquisition) ask() (bool, error) {
	a.requests.until, a.requests.throttled = a.askUntil(), 0
	ok, err := a.requests.send(a.ctx, "acquire", func(ctx context.Context) (ok bool, err error) {
		a.row, ok, err = a.locker.store.Acquire(ctx, &a.claim)
		return ok, err
	})
	return err == nil && (ok || a.row.Token == a.claim.Token), err
}

// askUntil returns until when a request that begins now may try. The last
// quarter of the budget is kept for giving up the claim, whose copies may still
// be under way. The last round of a wait must have ended with the time for
// work, however often it asked again.
func (a *acquisition) askUntil() time.Time {
	until := a.clock.Now().Add(a.timing.budget * 3 / 4)
	if !a.share.IsZero() && a.share.Before(until) {
		until = a.share
	}
	if a.timing.deadline.IsZero() {
		return until
	}
	if last := a.timing.deadline.Add(-a.timing.reserve - a.timing.budget/4); last.Before(until) {
		return last
	}
	return until
}

// abandon makes sure that no copy of the claim, of any round, is granted from
// now on. If it fails and a copy is granted, that copy's lease ends by itself.
// It must not shorten the life of a row that it does not know, which may be in
// a cooldown and has to remember an order for as long again after that.
func (a *acquisition) abandon() {
	r := retries{locker: a.locker, clock: a.clock, until: a.clock.Now().Add(a.timing.budget / 4)}
	_, _ = r.send(context.WithoutCancel(a.ctx), "release", func(ctx context.Context) (bool, error) {
		_, ok, err := a.locker.store.Settle(ctx, &driver.Settlement{
			Name: a.claim.Name, Token: a.claim.Token, DeleteAfter: keepHeld(a.claim.DeleteAfter), Abandon: true, Stamp: a.claim.Stamp,
		})
		return ok, err
	})
	a.requests.sent += r.sent
}

func (a *acquisition) verdict() driver.Verdict {
	if a.row.Unknown() {
		return driver.Held // the store does not say why it refused: assume the worst
	}
	return a.row.Judge(&a.claim)
}

func (a *acquisition) heldError(cause error) *HeldError {
	return &HeldError{
		Key: a.key, Holder: a.row.Holder, Since: a.row.Since(), Until: a.row.Until, Cause: cause,
		Duplicate: a.claim.Event != "" && a.row.Event == a.claim.Event, Cooldown: a.row.Cooling(),
	}
}

// mismatch reports whether the event of c came before with another payload.
func mismatch(before string, c *driver.Claim) bool {
	return before != "" && c.Payload != "" && before != c.Payload
}

// completedError leaves the result out if only one of the two claims had a
// payload: nobody knows then whether they stand for the same.
func (a *acquisition) completedError() error {
	alike := true
	for _, c := range a.row.Memory.Completed {
		switch {
		case c.Event != a.claim.Event:
		case mismatch(c.Payload, &a.claim):
			return &PayloadMismatchError{Key: a.key}
		case (c.Payload == "") != (a.claim.Payload == ""):
			alike = false
		}
	}
	e := &CompletedError{Key: a.key}
	if r := a.row.Memory.Result; alike && r.Event == a.claim.Event {
		e.Result = r.Body
	}
	return e
}

func (a *acquisition) newerError() error {
	return &StoreError{
		Op: "acquire", Store: a.locker.storeName, Answered: true, Unapplied: true, Requests: a.requests.sent,
		Err: errors.New("the row of key " + a.key.Digest() + " was written by a newer version of lambdalock: deploy that version here too"),
	}
}
