package lock

import (
	"errors"
	"slices"
	"time"
)

// set is several locks that were acquired together, and are ended together.
type set struct {
	locks []*Lock // in the order in which they were acquired
	end   end
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
	return s.end.outcome
}

// release releases every name, the last one first; see Lock.release.
func (s *set) release(work progress) error {
	reversed := slices.Clone(s.locks)
	slices.Reverse(reversed)
	s.endOnce(released, reversed, func(l *Lock, limit time.Time) func() {
		tell, _ := l.release(limit, work)
		return tell
	})
	return s.end.outcome
}

// endOnce ends the locks in the order given, unless that was done before, and
// returns how they ended. Observers hear of it when all have ended, so that one
// of them may end the set, too.
func (s *set) endOnce(how int32, locks []*Lock, end func(*Lock, time.Time) (tell func())) int32 {
	var tell []func()
	defer func() { callEach(tell) }()
	if !s.end.begin(how) {
		return s.end.how.Load()
	}
	defer s.end.finish()
	defer func() {
		var failed []error
		for _, l := range s.locks {
			if l.end.outcome != nil {
				failed = append(failed, l.end.outcome)
			}
		}
		if s.end.outcome = errors.Join(failed...); len(failed) == 1 {
			s.end.outcome = failed[0]
		}
	}()
	if len(locks) > 0 {
		until := locks[0].settleUntil(locks[0].clock.Now(), how == completed)
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
