package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// ErrOwed says that others were refused during the work and rely on one more
// run. [*OwedError] has the details.
var ErrOwed = errors.New("lambdalock: another run is owed")

// OwedError is what [Lock.Complete] and [Lock.Release] return with
// [Options.Coalesce] if others were refused during the work, and their events
// were acknowledged: nothing is completed yet.
type OwedError struct {
	Key Key
	// Again says that the lock goes on: run the work once more, and call Complete
	// again. Otherwise there was less time left than the last run took, or the work
	// failed, and the name was released: let the source deliver the event again.
	Again bool
	// Err is why the work failed, which package middleware sets. Nil: it succeeded,
	// or the error is that of Release.
	Err error
}

// Error implements error.
func (e *OwedError) Error() string {
	switch {
	case e.Again:
		return fmt.Sprintf("lambdalock: key %s: other events came meanwhile, so the work has to run once more", e.Key.Digest())
	case e.Err != nil:
		return fmt.Sprintf("lambdalock: key %s: other events rely on another run, or may, so the source has to deliver the event again although the work failed: %v", e.Key.Digest(), e.Err)
	}
	return fmt.Sprintf("lambdalock: key %s: other events came meanwhile, and there is no time left to run once more: the source has to deliver the event again", e.Key.Digest())
}

// Unwrap returns [ErrOwed]. It hides Err, which may say that the event need not
// be delivered again.
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
	if t := turnOf(a.ctx); t != nil {
		t.Coalescer = a.row.Event
	}
	held := a.heldError(nil)
	held.Coalesced = true
	return held
}

const (
	// longestSeries is how long one event is worked on before the run begins that
	// is its last. Without it, a continuous stream of events would keep a holder
	// without a deadline forever.
	longestSeries = 15 * time.Minute
	// enough is how many runs, each as long as the longest, must fit into the time
	// that is left, or the next one is the last: two, because others may come
	// during the next one, and one more, because runs differ.
	enough = 3
)

// takesMarks reports whether a claim asks for marks: not if runs of this
// process take so long that the run for those who mark would not fit in, and
// the event would never be completed.
func (a *acquisition) takesMarks() bool {
	need, t := 2*time.Duration(a.locker.lastRun.Load()), &a.timing
	fixed := t.lease > 0 && !t.renew
	return (t.deadline.IsZero() || t.deadline.Add(-t.reserve).Sub(a.began) >= need) && (!fixed || t.lease-t.margin >= need)
}

// ran notes that a run of the work has ended.
func (l *Lock) ran(now time.Time) {
	l.lastRun = now.Sub(l.runBegan)
	l.longestRun = max(l.longestRun, l.lastRun)
	l.locker.lastRun.Store(int64(l.lastRun))
}

// askForMarks lets the settlement be refused because of marks: a completion if
// the last run has not seen them all, and a release if there are any, because
// no run that has succeeded began after the last of them.
func (l *Lock) askForMarks(s *settlement) {
	switch {
	case l.locker.opts.Coalesce && s.completes:
		s.request.MarksBelow = l.row.Marks + 1 // zero if the row is closed
	case l.locker.opts.Coalesce:
		s.request.MarksBelow = 1
	}
}

// owed returns an error if the answer to a settlement says that the row has
// marks which the last run has not seen. It closes the row for marks if the
// next run is the last one.
func (l *Lock) owed(s *settlement, ok bool, err error) *OwedError {
	if ok || err != nil || s.row.Token != l.claim.Token || !s.row.Owes(&s.request) {
		return nil
	}
	owed := &OwedError{Key: l.key}
	if l.row.Marks = s.row.Marks; !s.completes {
		return owed
	}
	owed.Again = l.hasTimeToRun() && (!l.nextIsLast() || l.close(s) && l.hasTimeToRun())
	l.runBegan = l.clock.Now()
	return owed
}

// releaseOwing releases the name after a release that marks have refused. The
// marks go, and the error says so.
func (l *Lock) releaseOwing(s *settlement, owed *OwedError) (Outcome, error) {
	s.request.MarksBelow = 0
	ok, err := s.send(s.ctx, s.op(), s.sendOnce)
	outcome, err := l.ended(s, ok, err)
	if err == nil {
		err = owed
	}
	l.outcome = err
	return outcome, err
}

// hasTimeToRun reports whether a run may begin, if it takes as long as the
// last.
func (l *Lock) hasTimeToRun() bool {
	end, bounded := l.work.Deadline()
	return l.work.Err() == nil && l.check() == nil && (!bounded || end.Sub(l.clock.Now()) >= l.lastRun)
}

// nextIsLast reports whether the event must be completed after the next run,
// even if others come meanwhile.
func (l *Lock) nextIsLast() bool {
	now := l.clock.Now()
	left := l.decided.Add(longestSeries).Sub(now)
	if end, bounded := l.work.Deadline(); bounded {
		left = min(left, end.Sub(now))
	}
	return left < enough*l.longestRun
}

// close closes the row for marks, and reports whether that is certain: then the
// completion of the run that begins now owes no further run. Those who are
// refused from then on are delivered again.
func (l *Lock) close(s *settlement) bool {
	ok, err := s.send(s.ctx, "coalesce", func(ctx context.Context) (bool, error) {
		_, ok, err := l.locker.store.(driver.Coalescer).Mark(ctx, &driver.Mark{Name: l.claim.Name, Token: l.claim.Token, Close: true})
		return ok, err
	})
	if ok && err == nil {
		l.row.Marks = -1
		return true
	}
	return false
}
