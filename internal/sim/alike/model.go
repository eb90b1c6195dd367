package alike

import (
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// Model is what a store must do with one row, in Go: the row as its owner sees
// it, the end of its lease, and the judgement of [driver.Row].
type Model struct {
	Row driver.Row
	// End is the end of the lease by the store's own clock, if it has one.
	End time.Time

	c     *Config
	clock func() time.Time // the store's
}

// seenBy returns the row by the clock of a caller, which shows now.
func (m *Model) seenBy(token string, now time.Time) driver.Row {
	row := m.Row
	if m.c.ServerClock && row.Token != "" && row.Token != token {
		row.Until = now.Add(m.End.Sub(m.clock()))
	}
	return row
}

func (m *Model) acquire(c *driver.Claim) (driver.Row, bool) {
	row := m.seenBy(c.Token, c.Now)
	if row.Judge(c) != driver.Granted {
		return row, false
	}
	own := m.Row.Token == c.Token
	if m.c.ServerClock && own && m.Row.Stamp.Equal(c.Stamp) && m.Row.Until.Equal(c.Until) {
		return row, true // a copy must not extend the lease
	}
	m.begin(c.Until.Sub(c.Now), own)
	m.Row.Take(c, c.Stamp)
	row = m.Row
	m.Row.Previous = ""
	return row, true
}

// begin begins a lease of the present owner, or of another one.
func (m *Model) begin(lease time.Duration, own bool) {
	end := m.clock().Add(lease)
	if own && end.Before(m.End) && !m.c.Shortens {
		end = m.End
	}
	m.End = end
}

func (m *Model) renew(r *driver.Renewal) (driver.Row, bool) {
	before := m.Row.Until
	if !m.Row.Extend(r) {
		return m.seenBy(r.Token, r.Now), false
	}
	if !r.Until.Equal(before) {
		m.begin(r.Until.Sub(r.Now), true)
	}
	return m.Row, true
}

func (m *Model) release(t *driver.Settlement) (driver.Row, bool) {
	before := m.Row
	ok := m.Row.Settle(t)
	if ok && m.c.KeepsLonger && !before.OwnedBy(t.Token) && before.DeleteAfter.After(t.DeleteAfter) {
		m.Row.DeleteAfter = before.DeleteAfter
	}
	return m.Row, ok
}
