package inspect

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// Change is something that happened to a lock between two looks at its row.
type Change struct {
	Time     time.Time `json:"time"` // of the look
	Change   string    `json:"change"`
	Name     string    `json:"name"`
	Digest   string    `json:"digest"`
	Holder   string    `json:"holder,omitempty"`
	Previous string    `json:"previous,omitempty"` // the holder before, of taken_over
	Until    time.Time `json:"until,omitzero"`
	Fence    int64     `json:"fence,omitempty"`
	Event    string    `json:"event,omitempty"`
}

// The changes, as Change.Change names them.
const (
	present     = "held" // at the first look
	acquired    = "acquired"
	takenOver   = "taken_over" // from a holder whose lease had ended
	released    = "released"
	completed   = "completed"   // an event, and released
	expired     = "expired"     // the lease has ended, and the holder has not released it
	interrupted = "interrupted" // an event: nothing is known of the end of a run of it
	renewed     = "renewed"     // after it had expired
	deleted     = "deleted"     // the row
	newer       = "newer"       // the row has a newer format now, which this version cannot read
)

// Text returns the change as one line.
func (c *Change) Text() string {
	s := fmt.Sprintf("%s  %-11s  %s", clock(c.Time), c.Change, Safe(c.Name))
	if c.Event != "" {
		s += "  event " + Safe(c.Event)
	}
	if c.Holder != "" {
		s += "  by " + Safe(c.Holder)
	}
	if c.Previous != "" {
		s += "  from " + Safe(c.Previous)
	}
	if !c.Until.IsZero() {
		s += "  until " + clock(c.Until)
	}
	return s
}

// Changes compares looks at a store. Its zero value has not looked yet.
type Changes struct {
	// Skipped is called for a row that cannot be read, once until it can be again.
	// Nil: nobody wants to know.
	Skipped func(name string, err error)

	rows       map[string]look
	unreadable map[string]error
}

// look is what is kept of a row.
type look struct {
	newer                bool // nothing else is known then
	token, holder, event string
	began, until         time.Time
	fence                int64
	expired              bool
	renews               bool          // an earlier look showed an earlier end of this owner's lease
	left, longest        time.Duration // of the lease, at this look and at any since it was renewed
	remembered           []driver.CompletedEvent
	interrupted          []driver.InterruptedEvent
}

// Next compares the rows with those of the look before, and keeps them. It
// returns the changes in the order of the names. After an error it keeps what
// it had, of one row if the error concerns that alone.
func (c *Changes) Next(rows iter.Seq2[driver.NamedRow, error], now time.Time) ([]Change, error) {
	next, unreadable := make(map[string]look, len(c.rows)), map[string]error{}
	for row, err := range rows {
		switch {
		case err == nil:
			next[row.Name] = lookAt(&row.Row, now)
		case row.Name == "":
			return nil, err
		default:
			unreadable[row.Name] = err
			if before, known := c.rows[row.Name]; known {
				next[row.Name] = before
			}
		}
	}
	var all []Change
	for name, l := range next {
		before, known := c.rows[name]
		if l.token == before.token {
			l.follow(before)
			next[name] = l
		}
		first := c.rows == nil || !known && c.unreadable[name] != nil
		for _, change := range l.since(before, first) {
			change.Time, change.Name, change.Digest = now, name, split(name).digest()
			all = append(all, change)
		}
	}
	for name := range c.rows {
		if _, ok := next[name]; !ok {
			all = append(all, Change{Time: now, Change: deleted, Name: name, Digest: split(name).digest()})
		}
	}
	slices.SortStableFunc(all, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	for name, err := range unreadable {
		if c.Skipped != nil && c.unreadable[name] == nil {
			c.Skipped(name, err)
		}
	}
	c.rows, c.unreadable = next, unreadable
	return all, nil
}

// lookAt returns what a look at a row shows. A cooldown has no holder. The
// stamp is later than the look if the clock of an earlier claim was ahead.
func lookAt(row *driver.Row, now time.Time) look {
	if row.Newer {
		return look{newer: true}
	}
	memory := MemoryAt(row, now)
	began := row.Stamp
	if now.Before(began) {
		began = now
	}
	if row.Cooling() {
		return look{began: began, fence: row.Fence, remembered: memory.Completed, interrupted: memory.Interrupted}
	}
	left := row.Until.Sub(now)
	return look{
		token: row.Token, holder: row.Holder, event: row.Event, began: began, until: row.Until, fence: row.Fence,
		expired: StateOf(row, now) == Expired, left: left, longest: left, remembered: memory.Completed, interrupted: memory.Interrupted,
	}
}

// since returns what happened since the look before.
func (l *look) since(before look, first bool) []Change {
	var all []Change
	first = first || before.newer
	switch {
	case l.newer && before.newer:
		return nil
	case l.newer:
		return []Change{{Change: newer}}
	case first && l.token != "" && !l.expired:
		all = append(all, l.change(present))
	case first || l.token == before.token && l.fence == before.fence:
		if before.expired && !l.expired {
			all = append(all, l.change(renewed))
		}
	default:
		all = l.handover(before)
	}
	if l.expired && (!before.expired || l.token != before.token) {
		all = append(all, l.change(expired))
	}
	for _, e := range l.interrupted {
		known := func(old driver.InterruptedEvent) bool { return old.Event == e.Event && old.Since.Equal(e.Since) }
		if !slices.ContainsFunc(before.interrupted, known) {
			all = append(all, Change{Change: interrupted, Event: e.Event, Holder: e.Holder})
		}
	}
	return all
}

// change returns a change that the present owner made.
func (l *look) change(name string) Change {
	return Change{Change: name, Holder: l.holder, Until: inYears(l.until), Fence: l.fence, Event: l.event}
}

// jitter is by how much the end of a lease that is not renewed may differ
// between two looks. Redis counts what is left of it from each look, and S3 and
// Azure count whole seconds.
const jitter = 1100 * time.Millisecond

// follow takes over what an earlier look showed of the same owner.
func (l *look) follow(before look) {
	renewed := l.until.Sub(before.until) > jitter
	l.renews = before.renews || renewed
	if !renewed {
		l.longest = max(l.longest, before.longest)
	}
}

// missed reports whether the owner counts as dead: its lease had ended, or it
// had not renewed a lease that it renews otherwise, as it does once a third has
// passed.
func (l *look) missed() bool { return l.expired || l.renews && l.left < l.longest/3*2 }

// handover returns what happened if others have acquired the lock, or its owner
// released it. Nobody knows of an owner whose lease ended before the next one
// began whether it died, or released it after the look before. If it had missed
// a renewal by that look, it counts as dead. Otherwise nothing is said of its
// end: the look is too long ago, or the lease was not seen to be renewed, as a
// fixed one is not.
func (l *look) handover(before look) []Change {
	all := l.completions(before)
	ended := before.token != "" && l.token != "" && before.until.Before(l.began)
	switch {
	case len(all) > 0:
	case ended && before.missed():
		c := l.change(takenOver)
		c.Previous = before.holder
		return append(all, c)
	case !ended && (before.token != "" || l.token == ""):
		c := Change{Change: released, Holder: before.holder, Fence: before.fence, Event: before.event}
		if before.token == "" { // acquired and released since
			c.Fence = l.fence
		}
		all = append(all, c)
	}
	if l.token != "" {
		all = append(all, l.change(acquired))
	}
	return all
}

// completions returns the events that the row did not remember before.
func (l *look) completions(before look) (all []Change) {
	for _, e := range l.remembered {
		if slices.ContainsFunc(before.remembered, func(old driver.CompletedEvent) bool { return old.Event == e.Event && old.Until.Equal(e.Until) }) {
			continue
		}
		c := Change{Change: completed, Event: e.Event}
		if before.token != "" && before.event == e.Event {
			c.Holder, c.Fence = before.holder, before.fence
		}
		all = append(all, c)
	}
	return all
}
