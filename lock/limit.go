package lock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/event/stored"
)

const (
	// MaxLimit is the largest n of [Locker.AcquireOneOf]. If all slots are held,
	// they are asked one after the other, and a hundred requests of 5 to 10 ms fit
	// into the 1.5 s that an acquisition has for that.
	MaxLimit = 100
	// longestSpacing is how far apart the requests of a waiter become, however many
	// slots there are to ask. It is short enough for all of 40 slots to be asked
	// within longestPoll.
	longestSpacing = 50 * time.Millisecond
)

// slot is one of the rows of a limited name. It is acquired like any other row:
// with claims, stamps and a view of its holder that concern only this row.
type slot struct {
	waiter
	refusals int
	failed   bool      // the last request to it
	due      time.Time // when it is worth asking; zero if it was never asked
}

// slotName returns the stored name of a slot. The first one is the ordinary row
// of the name, so that those who do not know of the limit yet count as well
// while it is being introduced.
func slotName(prefix, name string, number int) string {
	if number > 1 {
		prefix += stored.SlotPrefix + strconv.Itoa(number) + ":"
	}
	return stored.Name(prefix, name)
}

// AcquireOneOf takes name as one of n who may hold it at the same time: at
// least 1, which is the ordinary lock, and at most [MaxLimit]. The errors are
// those of [Locker.Acquire]. A name has neither Event nor Order, because a
// duplicate would only take another slot: refuse duplicates in an outer lock.
//
// Each slot of the name is a row with its own lease and fence, so the fences of
// two slots cannot be compared. It takes one request, and one more for every
// slot that is found held; slots that it has not asked after 1.5 s, or sooner
// if the deadline is near, count as held. If two callers give different n for a
// name, the larger one counts.
func (l *Locker) AcquireOneOf(ctx context.Context, name string, n int) (*Lock, error) {
	w := &waiter{acquisition: l.newAcquisition(invocation.Believable(ctx), Key{Name: name})}
	switch {
	case n < 1 || n > MaxLimit:
		return w.acquire(func() error {
			return &ConfigError{Reason: fmt.Sprintf("%d invocations cannot hold a name at the same time: use 1 to %d", n, MaxLimit)}
		})
	case n == 1:
		return w.acquire(w.run)
	}
	return w.acquire(func() error { return w.runOneOf(n) })
}

// runOneOf returns nil once the claim owns one of n slots. Until then, w is
// what all slots have in common.
func (w *waiter) runOneOf(n int) error {
	if err := w.prepare(); err != nil {
		return err
	}
	if w.isWithin(func(outer *hold) bool { return outer.hasName(w.locker, w.claim.Name) }) {
		return w.nestedError()
	}
	slots := make([]slot, n)
	for i, number := range rand.New(w.clock).Perm(n) {
		slots[i].acquisition, slots[i].requests.once = w.acquisition, true
		slots[i].claim.Name = slotName(w.locker.prefix, w.key.Name, number+1)
	}
	got, err := (&search{waiter: w, slots: slots}).takeOne()
	if got != nil {
		w.claim, w.row, w.dated = got.claim, got.row, got.dated
	}
	w.abandonOthers(slots, got)
	if held := (*HeldError)(nil); errors.As(err, &held) {
		held.Limit = n
	}
	return err
}

// search is the search for a free slot. A slot whose server does not answer
// counts as held as long as another one answers.
type search struct {
	*waiter
	slots []slot
	// until is when a search in which no slot answers ends.
	until   time.Time
	failure *StoreError // the most telling one since the last answer
	streak  int         // how many requests have failed since then
}

// takeOne asks the slots until one is granted: each of them once, and then the
// one whose holder is the most likely to have ended.
func (s *search) takeOne() (*slot, error) {
	enough := s.clock.Now().Add(s.timing.budget * 3 / 4) // for the first round
	s.until = enough
	for {
		next, now := s.nextSlot(s.slots), s.clock.Now()
		over := now.After(enough) || s.streak > 0 && enough.Sub(now) <= shortestAttempt
		if over || !next.due.IsZero() {
			var err error
			if next, err = s.again(next, now); err != nil {
				return nil, err
			}
		}
		granted, err := s.tryNext(next)
		if granted {
			return next, nil
		}
		if err != nil {
			if err = s.fail(next, err); err != nil {
				return nil, err
			}
		}
		now = s.clock.Now()
		next.due = now.Add(next.nextLook(now, next.refusals))
		next.refusals++
	}
}

// tryNext asks a slot. One without an answer may take half of the time that is
// left, so that there is some for the others.
func (s *search) tryNext(next *slot) (bool, error) {
	now := s.clock.Now()
	next.share = time.Time{}
	if now.Before(s.until) {
		next.share = now.Add(max(s.until.Sub(now)/2, shortestAttempt))
	}
	next.requests.sent = s.requests.sent // so that an error reports all of them
	granted, err := next.try()
	s.requests.sent = next.requests.sent
	if err == nil {
		next.failed = false
		s.failure, s.streak, s.requests.throttled = nil, 0, 0
	}
	return granted, err
}

// fail returns nil if the search goes on after err, and after a pause.
func (s *search) fail(next *slot, err error) error {
	e := (*StoreError)(nil)
	if !errors.As(err, &e) {
		return err
	}
	s.failure = moreTelling(s.failure, e)
	if !e.Temporary || s.ctx.Err() != nil {
		return s.failed()
	}
	// If the store is down, many slots cause hardly more requests than few.
	next.failed = true
	pause := clock.Jitter(s.clock, firstPause<<min(s.streak/min(s.failing(), 8), 7))
	s.streak++
	if next.requests.throttled > 0 {
		s.requests.throttled++
		if giveUp := s.requests.onThrottle; giveUp != nil && giveUp(s.locker, s.requests.throttled) && (s.requests.pace != nil || !s.mayWait()) {
			return s.refused()
		}
		s.requests.until = s.until
		pause = s.requests.backOff(s.began)
	}
	left := s.until.Sub(s.clock.Now()) - shortestAttempt
	if left <= 0 && !s.mayWait() {
		return s.refused()
	}
	if left > 0 && s.clock.Sleep(s.ctx, min(pause, left)) != nil {
		return s.failed()
	}
	return nil
}

// again returns the slot to ask if next was asked before. If none can be waited
// for, it is one that failed, for as long as any request may be repeated.
func (s *search) again(next *slot, now time.Time) (*slot, error) {
	mayRepeat := s.until.Sub(now) >= shortestAttempt
	if mayRepeat && next.leaseEnded(clock.Wall(s.clock)) { // perhaps before the others were asked
		return next, nil
	}
	if s.mayWait() {
		s.row = firstToEnd(s.slots).row
		inVain := !slices.ContainsFunc(s.slots, func(one slot) bool { return !one.coolsTooLong(now) })
		if err := s.sleep(now, max(next.due.Sub(now), s.spacing(next, now)), inVain); err != nil {
			return nil, err
		}
		s.until = s.askUntil()
		return next, nil
	}
	var failed *slot
	for i := range s.slots {
		if one := &s.slots[i]; one.failed && (failed == nil || one.due.Before(failed.due)) {
			failed = one
		}
	}
	if failed == nil || !mayRepeat {
		return nil, s.refused()
	}
	return failed, nil
}

// failing returns how many slots did not answer the last request to them.
func (s *search) failing() (n int) {
	for i := range s.slots {
		if s.slots[i].failed {
			n++
		}
	}
	return n
}

// answered reports whether any slot has answered the last request to it.
func (s *search) answered() bool {
	return slices.ContainsFunc(s.slots, func(one slot) bool { return !one.due.IsZero() && !one.failed })
}

// mayWait reports whether there is a slot to wait for.
func (s *search) mayWait() bool { return s.locker.opts.MaxWait > 0 && s.answered() }

// refused returns why no slot was granted: all are held, or none has answered.
func (s *search) refused() error {
	if s.failure != nil && (!s.answered() || s.requests.throttled > 0 && s.requests.pace != nil) {
		return s.failed()
	}
	s.row = firstToEnd(s.slots).row
	return s.heldError(nil)
}

// failed returns the failure, about the requests to all slots.
func (s *search) failed() error {
	s.failure.Requests = s.requests.sent
	s.failure.Unapplied = !slices.ContainsFunc(s.slots, func(one slot) bool { return one.requests.unsure })
	return s.failure
}

// nextSlot returns the slot to ask next: one whose lease has ended since it was
// asked, because nothing else makes it as likely to be free, or the one that is
// due first.
func (a *acquisition) nextSlot(slots []slot) *slot {
	wall := clock.Wall(a.clock)
	first := &slots[0]
	for i := range slots {
		s := &slots[i]
		switch ended := s.leaseEnded(wall); {
		case ended != first.leaseEnded(wall):
			if ended {
				first = s
			}
		case s.due.Before(first.due):
			first = s
		}
	}
	return first
}

// leaseEnded reports whether the holder's lease has ended since the slot was
// asked. If it had ended before, the store judges by a slower clock.
func (s *slot) leaseEnded(wall time.Time) bool {
	return s.row.Token != "" && !s.row.Until.Before(s.claim.Now) && s.row.Until.Before(wall)
}

// spacing returns how long to wait at least before the next request. It keeps a
// waiter from asking many slots at the rate at which it would ask one.
func (a *acquisition) spacing(next *slot, now time.Time) time.Duration {
	if next.leaseEnded(clock.Wall(a.clock)) {
		return 0
	}
	return min(now.Sub(a.began)/16, longestSpacing)
}

// firstToEnd returns the slot whose holder has the lease that ends first.
func firstToEnd(slots []slot) *slot {
	first := &slots[0]
	for i := range slots {
		if row := &slots[i].row; row.Token != "" && (first.row.Token == "" || row.Until.Before(first.row.Until)) {
			first = &slots[i]
		}
	}
	return first
}

// abandonOthers gives up every claim that had no answer, except that of the
// slot that was granted: otherwise a late copy of it would hold a second slot.
// It does so at the same time for all, because the time for it is short.
func (a *acquisition) abandonOthers(slots []slot, got *slot) {
	var wg sync.WaitGroup
	for i := range slots {
		s := &slots[i]
		s.requests.sent = 0
		if s.requests.unsure && s != got {
			wg.Go(s.abandon)
		}
	}
	wg.Wait()
	for i := range slots {
		a.requests.sent += slots[i].requests.sent
	}
}
