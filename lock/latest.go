package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// Latest is [Locker.Do] for work that acts on current state and ignores what
// the event says: one run serves all events that came before it. If another
// event holds the name, Latest asks its holder for one more run and returns
// nil: acknowledge the event, although it is not completed. All who share a
// name do the same work.
//
// Every key needs an Event, and should have no Order: a stale event is refused
// without a run. The holder's own event, delivered again, meets a [*HeldError],
// and so does one that comes during the last run or a cooldown, or meets a
// holder without Latest. The last run begins when less time is left than three
// runs take, and after 15 minutes at the latest; a Locker whose runs take more
// than half of the time serves no others.
//
// After any error, let the source deliver the event again: others may rely on
// it, and are lost if it is. If work has to run once more and no time is left,
// the error is a [*DeadlineError]. If work fails and others rely on another
// run, or may, its error is hidden from [errors.Is] and [errors.As], because it
// may say that the event need not come again. The store must be a
// [driver.Coalescer], or the error is a [*ConfigError]. Options.MaxWait is not
// used.
func (l *Locker) Latest(ctx context.Context, key Key, work func(context.Context) error) error {
	s := &series{claim: l.newAcquisition(invocation.Believable(ctx), key)}
	lk, err := s.claim.acquire(s.acquire)
	switch {
	case errors.As(err, new(*coalescedError)):
		return nil
	case err != nil:
		return err
	}
	s.lock, s.seen, s.began = lk, lk.row.Marks, lk.clock.Now()
	return s.run(work)
}

// series is the runs of the work for one event and all that come meanwhile.
type series struct {
	claim         acquisition
	lock          *Lock
	seen          int64     // marks when the present run began; negative: the row is closed for them
	began         time.Time // the present run
	last, longest time.Duration
}

// coalescedError says that the holder was asked for one more run.
type coalescedError struct{ held *HeldError }

// Error implements error.
func (e *coalescedError) Error() string { return e.held.Error() }

func (*coalescedError) outcome() Outcome { return OutcomeCoalesced }

// Unwrap returns who holds the name.
func (e *coalescedError) Unwrap() error { return e.held }

// coalescePatience is how many holders may end just before they are asked. Then
// the event is refused, and its source delivers it again.
const coalescePatience = 4

// acquire returns nil once the claim owns the row.
func (s *series) acquire() error {
	a := &s.claim
	store, can := a.locker.store.(driver.Coalescer)
	if !can {
		return &ConfigError{Reason: fmt.Sprintf("Latest needs a store that can mark a row, and %s cannot: use DynamoDB, Redis on one server, S3 or Azure Blob Storage", a.locker.storeName)}
	}
	if err := a.prepare(); err != nil {
		return err
	}
	if a.key.Event == "" {
		return &NoKeyError{Field: "Event", Reason: "is empty, and with Latest every key needs one: it tells another delivery of the holder's own event, which must not be acknowledged, from the events of others"}
	}
	a.claim.TakesMarks, a.claim.InterruptedFor = s.takesMarks(), 0
	if r, _ := invocation.RecordClaimOf(a.ctx); r != nil && r.Serves {
		a.floor = clock.Wall(a.clock).Truncate(time.Microsecond).Add(a.locker.opts.Grace) // as the stamp of a mark
	}
	for asked := 0; ; asked++ {
		granted, err := a.try()
		if granted || err != nil {
			return err
		}
		if asked == coalescePatience {
			return a.heldError(nil)
		}
		if err := s.coalesce(store); err != nil {
			return err
		}
	}
}

// coalesce asks the holder, which refused the claim, for one more run. It
// returns why the acquisition ends, or nil if the holder has ended meanwhile.
//
// A delivery of the holder's own event is not coalesced: to acknowledge it may
// delete the message that has to come again if the holder fails.
func (s *series) coalesce(store driver.Coalescer) error {
	a := &s.claim
	if a.row.Event == a.claim.Event || !a.row.Coalesces() {
		return a.heldError(nil)
	}
	mark := driver.Mark{
		Name: a.claim.Name, Token: a.row.Token,
		// Above that of every claim for the event: the clock of an earlier delivery
		// may have been ahead, and this process' clock may have been set back.
		Stamp: later(a.claim.Now.Add(a.locker.opts.Grace), a.claim.Stamp),
	}
	r := a.requests // a copy, because a mark without an answer does not leave the claim unsure
	r.until, r.throttled, r.unsure = a.askUntil(), 0, false
	marked, err := r.send(a.ctx, "coalesce", func(ctx context.Context) (ok bool, err error) {
		_, ok, err = store.Mark(ctx, &mark)
		return ok, err
	})
	a.requests.sent, a.requests.throttled = r.sent, r.throttled
	switch {
	case err != nil:
		return err
	case !marked:
		return nil
	}
	if r, _ := invocation.RecordClaimOf(a.ctx); r != nil {
		r.Coalescer = a.row.Event
	}
	return &coalescedError{a.heldError(nil)}
}

// run runs the work until an end of it is accepted.
func (s *series) run(work func(context.Context) error) (err error) {
	l, failed := s.lock, true
	defer func() { // after a panic too
		relied := err != nil // the end was not accepted, maybe because of others
		if failed {
			relied = s.release()
		}
		if failed && relied && err != nil {
			err = &invocation.OwedError{Key: l.key.Digest(), Err: err}
		}
		if r, _ := invocation.RecordClaimOf(l.ctx); r != nil {
			r.Owed = relied
		}
	}()
	l.repeats = true
	ctx := driver.NewContext(l.work, (*repeatedLock)(l))
	for {
		if err := work(ctx); err != nil {
			return err
		}
		if err := s.complete(); !errors.Is(err, errOnceMore) {
			failed = false
			return err
		}
	}
}

// repeatedLock is a Lock as the work of Latest knows it.
type repeatedLock Lock

// Store implements [driver.Lock].
func (r *repeatedLock) Store() driver.Store { return r.locker.store }

// Work implements [invocation.Worker].
func (r *repeatedLock) Work() invocation.Work { return (*heldLock)(r).Work() }

// CompleteWith implements [driver.Lock].
func (r *repeatedLock) CompleteWith(context.Context, []byte, func(context.Context, *driver.Settlement) (driver.Row, bool, error)) error {
	return &ConfigError{Reason: "a transaction completes the event once, and the work of Latest may have to run again: write without a transaction, or use WithLock"}
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
func (s *series) takesMarks() bool {
	a := &s.claim
	need, t := 2*time.Duration(a.locker.lastRun.Load()), &a.timing
	fixed := t.lease > 0 && !t.renew
	return (t.deadline.IsZero() || t.deadline.Add(-t.reserve).Sub(a.began) >= need) && (!fixed || t.lease-t.margin >= need)
}

// errOnceMore says that others were refused during the run, so that the work
// has to run once more.
var errOnceMore = errors.New("lambdalock: other events came meanwhile")

// complete completes the event if the last run has seen all marks. Otherwise it
// returns errOnceMore, or a [*DeadlineError] and the name is free.
func (s *series) complete() error {
	l := s.lock
	l.beginEnd(tentative)
	s.last = l.clock.Now().Sub(s.began)
	s.longest = max(s.longest, s.last)
	l.locker.lastRun.Store(int64(s.last))
	c := l.completion(Completion{})
	owed := false
	if s.seen >= 0 {
		c.request.MarksBelow = s.seen + 1
		c.goesOn = func(ok bool, err error) error {
			if owed = s.isOwed(c, ok, err); !owed {
				return nil
			}
			s.seen = c.row.Marks
			return s.next(c)
		}
	}
	tell, err := l.settle(c)
	tell()
	if owed && !errors.Is(err, errOnceMore) {
		_ = l.Release()
	}
	return err
}

// isOwed reports whether the answer to a settlement says that the row has marks
// which the last run has not seen.
func (s *series) isOwed(c *settlement, ok bool, err error) bool {
	return !ok && err == nil && c.row.Token == s.lock.claim.Token && c.row.Owes(&c.request)
}

// release releases the name after a run that failed, and reports whether others
// rely on the event, or may. The first request is refused if there are any
// marks, because no run that has succeeded began after the last of them.
func (s *series) release() (relied bool) {
	l := s.lock
	if !l.beginEnd(released) { // an observer panicked
		return l.end.outcome != nil
	}
	r := l.settlement(false)
	l.coolDown(&r.request)
	r.request.MarksBelow = 1
	r.goesOn = func(ok bool, err error) error {
		if relied = s.isOwed(r, ok, err); relied {
			return errOnceMore
		}
		return nil
	}
	tell, err := l.settle(r)
	tell()
	if relied {
		_ = l.Release()
	}
	return relied || err != nil
}

// next returns errOnceMore if the work can run once more, or else a
// [*DeadlineError]. It closes the row for marks if that run is the last one.
func (s *series) next(c *settlement) error {
	if !s.hasTime() || s.nextIsLast() && !(s.close(c) && s.hasTime()) {
		return &DeadlineError{Left: s.left(), Need: s.last, again: true}
	}
	s.began = s.lock.clock.Now()
	return errOnceMore
}

// hasTime reports whether a run may begin, if it takes as long as the last.
func (s *series) hasTime() bool {
	l := s.lock
	end, bounded := l.work.Deadline()
	return l.work.Err() == nil && l.check() == nil && (!bounded || end.Sub(l.clock.Now()) >= s.last)
}

// left returns how much time a run has that begins now.
func (s *series) left() time.Duration {
	end, bounded := s.lock.work.Deadline()
	if !bounded || s.lock.work.Err() != nil {
		return 0
	}
	return max(end.Sub(s.lock.clock.Now()), 0)
}

// nextIsLast reports whether the event must be completed after the next run,
// even if others come meanwhile.
func (s *series) nextIsLast() bool {
	l := s.lock
	now := l.clock.Now()
	left := l.decided.Add(longestSeries).Sub(now)
	if end, bounded := l.work.Deadline(); bounded {
		left = min(left, end.Sub(now))
	}
	return left < enough*s.longest
}

// close closes the row for marks, and reports whether that is certain: then the
// completion of the run that begins now owes no further run. Those who are
// refused from then on are delivered again.
func (s *series) close(c *settlement) bool {
	l := s.lock
	ok, err := c.send(c.ctx, "coalesce", func(ctx context.Context) (bool, error) {
		_, ok, err := l.locker.store.(driver.Coalescer).Mark(ctx, &driver.Mark{Name: l.claim.Name, Token: l.claim.Token, Close: true})
		return ok, err
	})
	if ok && err == nil {
		s.seen = -1
		return true
	}
	return false
}
