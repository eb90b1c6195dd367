package locktest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// randomRequests compares a store with the rules of [driver.Row] on random
// requests of few owners, events and moments, so that all of them meet, and on
// late copies of them.
func randomRequests(f *fixture) { // F1, F3, F5, F14, F21, F44
	histories := uint64(20)
	if testing.Short() {
		histories = 8
	}
	verdicts := map[driver.Verdict]int{}
	for seed := range histories {
		c := f.compare()
		c.verdicts = verdicts
		r := &requests{Rand: rand.New(rand.NewPCG(seed, 7)), c: c, began: c.now}
		for range 60 {
			c.advance(r.units(r.IntN(2)))
			c.send(r.next())
		}
		f.now = c.now
	}
	for _, v := range []driver.Verdict{driver.Granted, driver.Completed, driver.Stale, driver.Held, driver.Behind} {
		if verdicts[v] == 0 {
			f.Errorf("verdict %d did not come up", v)
		}
	}
}

// requests makes random requests to the row of a comparison. Their times are
// whole units.
type requests struct {
	*rand.Rand
	c     *comparison
	began time.Time
	sent  []request
}

func (*requests) units(n int) time.Duration { return time.Duration(n) * unit }

// lease returns the length of a lease. It ends between two moments if the store
// has a clock of its own, because that does not stand still.
func (r *requests) lease() time.Duration {
	lease := r.units(r.IntN(8))
	if r.c.Advance != nil {
		lease += unit / 2
	}
	return lease
}

// soon returns a time of the next n units.
func (r *requests) soon(n int) time.Time { return r.c.now.Add(r.units(r.IntN(n))) }

// wall returns the clock of an owner. If the store has a clock of its own, the
// owners' clocks may be hours apart; otherwise a few units.
func (r *requests) wall(token string) time.Time {
	switch {
	case r.c.Advance == nil:
		return r.soon(4)
	case token == "a":
		return r.c.now.Add(-5 * time.Hour)
	case token == "b":
		return r.c.now.Add(7 * time.Hour)
	}
	return r.c.now
}

func (r *requests) pick(of ...string) string { return of[r.IntN(len(of))] }

// next returns a new request, or a copy of an earlier one.
func (r *requests) next() request {
	if n := len(r.sent); n > 0 && r.IntN(4) == 0 {
		return r.sent[n-1-r.IntN(min(n, []int{4, n}[r.IntN(2)]))]
	}
	q := r.make()
	r.sent = append(r.sent, q)
	return q
}

func (r *requests) make() request {
	row := r.c.row
	keep := r.began.Add(time.Duration(24+r.IntN(5)) * time.Hour)
	token := r.pick("a", "b", "c", row.Token)
	s := &driver.Settlement{Name: r.c.name, Token: token, DeleteAfter: keep}
	if _, ok := r.c.store.(driver.Coalescer); ok && r.IntN(8) == 0 {
		return request{mark: &driver.Mark{Name: r.c.name, Token: token, Stamp: r.soon(4), Close: r.IntN(4) == 0}}
	} else if ok && r.IntN(2) == 0 {
		s.MarksBelow = max(row.Marks, 0) + int64(r.IntN(2))
	}
	if _, ok := r.c.store.(driver.Line); ok && r.IntN(8) == 0 {
		return request{}
	}
	switch r.IntN(10) {
	case 0, 1, 2, 3:
		return request{claim: r.claim(keep)}
	case 4, 5:
		now := r.wall(token)
		until := now.Add(r.lease())
		if row.Token == token && r.IntN(4) == 0 {
			until = row.Until // nothing but DeleteAfter moves
		}
		return request{renewal: &driver.Renewal{Name: r.c.name, Token: token, Now: now, Until: until, DeleteAfter: keep}}
	case 6, 7:
		s.Memory = r.memory(token)
		fallthrough
	case 9:
		if s.Now = r.wall(token); r.IntN(2) == 0 {
			s.Until, s.CooldownToken = s.Now.Add(r.lease()), fmt.Sprint("cools ", len(r.sent))
		}
	case 8:
		s.Abandon, s.Stamp, s.MarksBelow = true, r.soon(4), 0
	}
	return request{settlement: s}
}

func (r *requests) claim(keep time.Time) *driver.Claim {
	c := &driver.Claim{
		Name: r.c.name, Token: r.pick("a", "b", "c"), Holder: r.pick("h", "i"), Event: r.pick("", "e", "f"), Order: r.pick("", "", "1", "2", "3"),
		Stamp: r.soon(4), DeleteAfter: keep, // the stamp is as if raised above one that was seen
	}
	for slices.ContainsFunc(r.sent, func(q request) bool {
		return q.claim != nil && q.claim.Token == c.Token && q.claim.Stamp.Equal(c.Stamp)
	}) {
		c.Stamp = c.Stamp.Add(time.Microsecond) // each round of a claim has a stamp of its own
	}
	c.Now = r.wall(c.Token)
	c.Until = c.Now.Add(r.lease())
	if _, ok := r.c.store.(driver.Line); ok {
		c.Place = int64(r.IntN(4))
	}
	if _, ok := r.c.store.(driver.Coalescer); ok {
		c.TakesMarks = r.IntN(2) == 0
	}
	if c.Event != "" && r.c.keepsInterrupted() && r.IntN(2) == 0 {
		c.InterruptedFor = r.units(r.IntN(6))
	}
	if c.Event != "" {
		c.Payload = r.pick("", "p", "q")
	}
	return c
}

func (r *requests) memory(token string) *driver.Memory {
	m := &driver.Memory{HighestOrder: r.pick(r.c.row.Memory.HighestOrder, "1", "2")}
	now := r.wall(token)
	for _, e := range []string{"e", "f", "g"} {
		if r.IntN(2) == 0 {
			done := driver.CompletedEvent{Event: e, Payload: r.pick("", "p", "q"), Until: now.Add(r.units(r.IntN(6)))}
			if done.Payload != "p" {
				done.At = now.Add(-time.Minute).Truncate(time.Second)
			}
			m.Completed = append(m.Completed, done)
		}
	}
	if r.IntN(2) == 0 {
		m.Interrupted = slices.Clone(r.c.row.Memory.Interrupted)
		if n := len(m.Interrupted); n > 0 && r.IntN(2) == 0 {
			m.Interrupted = m.Interrupted[1:]
		}
	}
	if n := len(m.Completed); n > 0 && r.IntN(2) == 0 {
		m.Result = driver.Result{Event: m.Completed[n-1].Event, Body: []byte(r.pick("x", "y"))}
	}
	return m
}
