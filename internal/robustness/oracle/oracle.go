// Package oracle says which outcomes of locks must be reported, by the answers
// that a process got from its store. It knows the protocol, and nothing of what
// package lock observes.
package oracle

import (
	"errors"
	"slices"
	"sync"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// Log notes the requests of one process and their answers. The zero value is
// empty. It is safe for concurrent use.
type Log struct {
	mu       sync.Mutex
	locks    map[string]*lock // by token
	requests int
}

// lock is one claim, and the lock that it got.
type lock struct {
	event, order string
	claim        string // how the claim ended, by its last answer
	end          string // how the lock ended, by its last answer; empty: it has not
	unsure       bool   // a request that ends the lock may have been applied
}

func (l *Log) of(token string) *lock {
	if l.locks == nil {
		l.locks = map[string]*lock{}
	}
	if l.locks[token] == nil {
		l.locks[token] = &lock{}
	}
	return l.locks[token]
}

// Claim notes the answer to a claim.
func (l *Log) Claim(c *driver.Claim, row driver.Row, ok bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests++
	k := l.of(c.Token)
	k.event, k.order = c.Event, c.Order
	k.claim = claimed(c, &row, ok, err)
}

func claimed(c *driver.Claim, row *driver.Row, ok bool, err error) string {
	switch {
	case err != nil && throttled(err):
		return "throttled"
	case err != nil:
		return "store_failed"
	case (ok || row.Token == c.Token) && row.Previous.Holder != "":
		return "taken_over"
	case ok || row.Token == c.Token:
		return "acquired"
	case !row.Unknown() && row.Judge(c) == driver.Completed:
		return "already_completed"
	case !row.Unknown() && row.Judge(c) == driver.Stale:
		return "stale"
	case c.Event != "" && row.Event == c.Event:
		return "in_progress"
	}
	return "held"
}

func throttled(err error) bool {
	var e *driver.Error
	return errors.As(err, &e) && e.Answered && !e.Lasting && !e.Conflict
}

// Renewal notes a renewal.
func (l *Log) Renewal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests++
}

// Settlement notes the answer to a settlement.
func (l *Log) Settlement(s *driver.Settlement, row driver.Row, ok bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests++
	if s.Abandon {
		return
	}
	k := l.of(s.Token)
	completes := s.Memory != nil
	var e *driver.Error
	switch {
	case err != nil:
		k.unsure = k.unsure || !errors.As(err, &e) || !e.Unapplied
		k.end = either(completes, "complete_failed", "store_failed")
	case ok || k.unsure && (!completes || k.completedIn(&row, s.Memory)):
		k.end = either(completes, "completed", "released")
	default:
		k.end = "lost"
	}
}

// completedIn reports whether a row says that the lock has completed its event,
// as the memory that it sent has it.
func (k *lock) completedIn(row *driver.Row, sent *driver.Memory) bool {
	if k.event != "" {
		return slices.ContainsFunc(sent.Completed, func(own driver.CompletedEvent) bool {
			return own.Event == k.event && slices.ContainsFunc(row.Memory.Completed, func(c driver.CompletedEvent) bool {
				return c.Event == own.Event && c.Until.Equal(own.Until)
			})
		})
	}
	return row.Memory.HighestOrder >= k.order
}

func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// Outcomes returns how often each outcome of a claim, and each of the end of a
// lock, must have been reported, if every lock that was acquired reached its
// caller. Two are told apart: an event that was completed is not released, and
// a duplicate in progress is not held. A claim that the store throttled is
// throttled: it failed, or goes back to the queue of its batch.
func (l *Log) Outcomes() (claims, ends map[string]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	claims, ends = map[string]int{}, map[string]int{}
	for _, k := range l.locks {
		claims[k.claim]++
		if k.end != "" {
			ends[k.end]++
		}
	}
	return claims, ends
}

// Requests returns how many requests there were.
func (l *Log) Requests() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests
}
