package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/event/stored"
)

// set is several locks that were acquired together, and are ended together.
type set struct {
	clock clock.Clock
	began time.Time
	locks []*Lock // in the order in which they were acquired
	all   bool    // every key was acquired

	settling chan struct{} // has an element while the locks are being ended
	ending   int32         // completed or released; 0 before that
	outcome  error         // of that
}

// AcquireAll takes all keys, or none of them: if one is refused, those before
// it are released, and the error is what [Locker.Acquire] returns for that one.
// Every Event must stand for the whole event: one that is completed under any
// key is refused. The same goes for Order: use it only if all events have the
// same keys.
//
// The names are acquired one after the other, always in the same order, so that
// two calls never deadlock; nested calls need an order of their own.
// Options.MaxWait is for all names together, and those already acquired stay
// held during the wait. A fixed lease begins when its own name is acquired.
//
// A key that is given twice is acquired once. A name that is given with two
// different events, orders or payloads is refused with a [*NoKeyError], and so
// is a call without keys. Each key costs one request, and one more when it
// ends.
//
// The Lock is all of them: its context carries every lease (see [Leases]) and
// ends when any of them is lost. [Lock.Lease] is that of the name which was
// acquired last. Complete and Release end every lock, in the order in which
// they were acquired or the reverse, in the time that one has, and go on if one
// fails; the error wraps all of theirs. From the first completed row on the
// event is skipped: after a crash between two rows the work does not run again,
// and the other names are free once their leases end.
func (l *Locker) AcquireAll(ctx context.Context, keys ...Key) (*Lock, error) {
	ctx = invocation.Believable(ctx)
	c := clock.From(ctx)
	s := &set{clock: c, began: c.Now(), settling: make(chan struct{}, 1)}
	sorted, wrong, err := l.inOrder(keys)
	if err != nil {
		a := l.newAcquisition(ctx, wrong)
		a.decided = c.Now()
		a.report(err)
		return nil, err
	}
	defer func() {
		if !s.all { // also if an observer panics
			_ = s.release()
		}
	}()
	for _, key := range sorted {
		a := l.newAcquisition(ctx, key)
		a.set = s
		lk, err := a.acquire(a.run)
		if err != nil {
			return nil, err
		}
		s.locks = append(s.locks, lk)
		ctx = lk.work // so the last one ends with every one of them, and carries all leases
	}
	s.all = true
	return s.last(), nil
}

// inOrder returns the keys sorted by their stored names, each of them once. If
// it returns an error, wrong is the key that is at fault, if it is one of them.
func (l *Locker) inOrder(keys []Key) (sorted []Key, wrong Key, err error) {
	if len(keys) == 0 {
		return nil, wrong, &NoKeyError{Field: "keys", Reason: "are none, so nothing would be locked: give at least one"}
	}
	for i, k := range keys {
		var e *NoKeyError
		if errors.As(k.check(), &e) {
			e.Field = fmt.Sprintf("keys[%d].%s", i, e.Field)
			return nil, k, e
		}
	}
	sorted = slices.Clone(keys)
	slices.SortFunc(sorted, func(a, b Key) int {
		return cmp.Compare(stored.Name(l.prefix, a.Name), stored.Name(l.prefix, b.Name))
	})
	sorted = slices.Compact(sorted)
	for i := range sorted[1:] {
		if k := sorted[i+1]; k.Name == sorted[i].Name {
			return nil, k, &NoKeyError{Field: "keys", Reason: "hold one name (" + k.Digest() + ") with different events, orders or payloads, and a name has one lock: give it one key"}
		}
	}
	return sorted, wrong, nil
}

// complete completes the event of every key.
func (s *set) complete(c Completion) error {
	how := s.endOnce(completed, s.locks, func(l *Lock, limit time.Time) func() {
		tell, _ := l.complete(c, limit)
		return tell
	})
	if how == released {
		return ErrReleased
	}
	return s.outcome
}

// release releases every name, the last one first.
func (s *set) release() error {
	reversed := slices.Clone(s.locks)
	slices.Reverse(reversed)
	s.endOnce(released, reversed, func(l *Lock, limit time.Time) func() {
		tell, _ := l.release(limit)
		return tell
	})
	return s.outcome
}

// endOnce ends the locks in the order given, unless that was done before, and
// returns how they ended. Observers hear of it when all have ended, so that one
// of them may end the set, too.
func (s *set) endOnce(how int32, locks []*Lock, end func(*Lock, time.Time) (tell func())) int32 {
	var tell []func()
	defer func() { callEach(tell) }()
	s.settling <- struct{}{}
	defer func() { <-s.settling }()
	if s.ending != 0 {
		return s.ending
	}
	s.ending = how
	defer func() {
		var failed []error
		for _, l := range s.locks {
			if l.outcome != nil {
				failed = append(failed, l.outcome)
			}
		}
		if s.outcome = errors.Join(failed...); len(failed) == 1 {
			s.outcome = failed[0]
		}
	}()
	if len(locks) > 0 {
		until := locks[0].settleUntil(s.clock.Now(), how == completed)
		endEach(locks, until, func(l *Lock, limit time.Time) { tell = append(tell, end(l, limit)) })
	}
	return how
}

// endEach ends all locks even if the store panics.
func endEach(locks []*Lock, until time.Time, end func(*Lock, time.Time)) {
	limit := until
	if len(locks) > 1 {
		defer endEach(locks[1:], until, end)
		limit = until.Add(-until.Sub(locks[0].clock.Now()) / 2)
	}
	end(locks[0], limit)
}

// callEach calls all functions even if one panics.
func callEach(functions []func()) {
	if len(functions) > 0 {
		defer callEach(functions[1:])
		functions[0]()
	}
}

// last returns the lock that was acquired last, or nil.
func (s *set) last() *Lock {
	if s == nil || len(s.locks) == 0 {
		return nil
	}
	return s.locks[len(s.locks)-1]
}

// causeOf returns why an acquisition failed with err. If it got no answer, or
// stopped waiting, because a lock of the set was lost meanwhile, then that is
// why.
func (s *set) causeOf(err error) error {
	if !errors.Is(err, ErrLost) && !errors.As(err, new(*StoreError)) {
		return err
	}
	if last := s.last(); last != nil {
		return cmp.Or(last.check(), err)
	}
	return err
}
