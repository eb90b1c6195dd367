package explore

import (
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// Stored is a row as a store keeps it. Its methods are what the stores have to
// agree with. They return the row that the asker gets, and whether the request
// was applied.
type Stored struct {
	driver.Row
	// End is the end of the lease by the clock of a store that judges by its own.
	// Otherwise it is zero.
	End time.Time
}

// Rules are the rules of a store.
type Rules struct {
	// Judge decides about claims.
	Judge func(*driver.Row, *driver.Claim) driver.Verdict
	// Extend and Settle apply a renewal or a settlement, and report whether they
	// did.
	Extend func(*driver.Row, *driver.Renewal) bool
	Settle func(*driver.Row, *driver.Settlement) bool
}

// Right returns the rules of [driver.Row].
func Right() Rules {
	return Rules{Judge: (*driver.Row).Judge, Extend: (*driver.Row).Extend, Settle: (*driver.Row).Settle}
}

// seenBy returns the row by the clock of an asker, which shows now. at is the
// store's clock, or zero if it judges by the asker's.
func (s *Stored) seenBy(token string, now, at time.Time) driver.Row {
	row := s.Row
	if !at.IsZero() && row.Token != "" && row.Token != token {
		row.Until = now.Add(s.End.Sub(at))
	}
	return row
}

// Acquire applies a claim at a time of the store's clock, or at zero.
func (s Stored) Acquire(rules *Rules, c *driver.Claim, at time.Time) (after Stored, answer driver.Row, ok bool) {
	seen := s.seenBy(c.Token, c.Now, at)
	if rules.Judge(&seen, c) != driver.Granted {
		return s, seen, false
	}
	again := s.Token == c.Token
	if again && !at.IsZero() && s.Stamp.Equal(c.Stamp) && s.Until.Equal(c.Until) {
		return s, s.Row, true // a copy must not begin the lease anew
	}
	clock := at
	if at.IsZero() {
		clock = c.Stamp
	}
	s.Take(c, clock)
	s.extend(again, c.Until.Sub(c.Now), at)
	answer = s.Row
	s.Previous = ""
	return s, answer, true
}

// Renew applies a renewal.
func (s Stored) Renew(rules *Rules, r *driver.Renewal, at time.Time) (after Stored, answer driver.Row, ok bool) {
	before := s.Until
	if !rules.Extend(&s.Row, r) {
		return s, s.seenBy(r.Token, r.Now, at), false
	}
	if !s.Until.Equal(before) { // a copy must not extend the lease again
		s.extend(true, r.Until.Sub(r.Now), at)
	}
	return s, s.Row, true
}

// extend moves the end of the lease by the store's clock, never back.
func (s *Stored) extend(own bool, lease time.Duration, at time.Time) {
	if at.IsZero() {
		return
	}
	if end := at.Add(lease); !own || end.After(s.End) {
		s.End = end
	}
}

// Settle applies a settlement.
func (s Stored) Settle(rules *Rules, t *driver.Settlement) (after Stored, answer driver.Row, ok bool) {
	ok = rules.Settle(&s.Row, t)
	if s.Token == "" {
		s.End = time.Time{}
	}
	return s, s.Row, ok
}
