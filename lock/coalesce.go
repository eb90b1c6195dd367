package lock

import (
	"context"
	"errors"
	"fmt"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// ErrOwed says that others were refused during the work and rely on one more
// run. [*OwedError] has the details.
var ErrOwed = errors.New("lambdalock: another run is owed")

// OwedError is what [Lock.Complete] returns with [Options.Coalesce] if others
// were refused during the work, and their events were acknowledged: nothing is
// completed yet.
type OwedError struct {
	Key Key
	// Again says that the lock goes on: run the work once more, and call Complete
	// again. Otherwise there was less time left than the last run took, and the
	// name was released: return the error, so that the source delivers the event
	// again.
	Again bool
}

// Error implements error.
func (e *OwedError) Error() string {
	if e.Again {
		return fmt.Sprintf("lambdalock: key %s: other events came meanwhile, so the work has to run once more", e.Key.Digest())
	}
	return fmt.Sprintf("lambdalock: key %s: other events came meanwhile, and there is no time left to run once more: the source has to deliver the event again", e.Key.Digest())
}

// Unwrap returns [ErrOwed].
func (e *OwedError) Unwrap() error { return ErrOwed }

// checkCoalesce returns a [*ConfigError] if the store or other options rule
// [Options.Coalesce] out.
func (o *Options) checkCoalesce(store driver.Store) error {
	_, can := store.(driver.Coalescer)
	switch {
	case !o.Coalesce:
		return nil
	case !can:
		return &ConfigError{Reason: fmt.Sprintf("Coalesce needs a store that can mark a row, and %s cannot: use DynamoDB, Redis on one server, S3 or Azure Blob Storage, or leave the option out", driver.Describe(store))}
	case o.Limit > 1:
		return &ConfigError{Reason: "Coalesce and Limit are both given, but several holders do not know which of them has to run once more: leave one out"}
	case o.MaxWait > 0:
		return &ConfigError{Reason: "Coalesce and MaxWait are both given, but an event that is coalesced does not wait: leave one out"}
	}
	return nil
}

// coalescePatience is how many holders may end just before they are asked. Then
// the event is refused, and its source delivers it again.
const coalescePatience = 4

// coalesce asks the holder, which refused the claim, for one more run. It
// returns the [*HeldError] to report, or nil if the holder has ended meanwhile.
//
// A delivery of the holder's own event is not coalesced: to acknowledge it may
// delete the message that has to come again if the holder fails.
func (a *acquisition) coalesce() error {
	if a.row.Event == a.claim.Event || !a.row.Coalesces() {
		return a.heldError(nil)
	}
	store, mark := a.locker.store.(driver.Coalescer), driver.Mark{
		Name: a.claim.Name, Token: a.row.Token,
		// Above that of every claim for the event: the clock of an earlier delivery
		// may have been ahead, and this process' clock may have been set back.
		Stamp: later(a.claim.Now.Add(a.locker.opts.Grace), a.claim.Stamp),
	}
	r := a.requests // a copy, because what becomes of the mark says nothing about the claim
	r.until, r.throttled, r.unsure = a.askUntil(), 0, false
	marked, err := r.send(a.ctx, "coalesce", func(ctx context.Context) (ok bool, err error) {
		_, ok, err = store.Mark(ctx, &mark)
		return ok, err
	})
	a.requests.sent = r.sent
	switch {
	case err != nil:
		return err
	case !marked:
		return nil
	}
	held := a.heldError(nil)
	held.Coalesced = true
	return held
}

// owed returns an error if the answer to a settlement says that the row has
// marks which the last run has not seen.
func (l *Lock) owed(s *settlement, ok bool, err error) *OwedError {
	if ok || err != nil || s.request.MarksBelow == 0 || s.row.Token != l.claim.Token || s.row.Marks < s.request.MarksBelow {
		return nil
	}
	l.row.Marks = s.row.Marks
	now := l.clock.Now()
	took := now.Sub(l.runBegan)
	l.runBegan = now
	end, ok := l.work.Deadline()
	return &OwedError{Key: l.key, Again: l.work.Err() == nil && l.check() == nil && (!ok || end.Sub(now) >= took)}
}
