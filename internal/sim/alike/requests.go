package alike

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// request is one of a store's three.
type request interface {
	send(context.Context, driver.Store) (driver.Row, bool, error)
	apply(*Model) (driver.Row, bool)
	from() string // the token
}

type (
	claim      driver.Claim
	renewal    driver.Renewal
	settlement driver.Settlement
)

func (c *claim) send(ctx context.Context, s driver.Store) (driver.Row, bool, error) {
	return s.Acquire(ctx, (*driver.Claim)(c))
}

func (r *renewal) send(ctx context.Context, s driver.Store) (driver.Row, bool, error) {
	return s.Renew(ctx, (*driver.Renewal)(r))
}

func (s *settlement) send(ctx context.Context, to driver.Store) (driver.Row, bool, error) {
	return to.Release(ctx, (*driver.Settlement)(s))
}

func (c *claim) apply(m *Model) (driver.Row, bool)      { return m.acquire((*driver.Claim)(c)) }
func (r *renewal) apply(m *Model) (driver.Row, bool)    { return m.renew((*driver.Renewal)(r)) }
func (s *settlement) apply(m *Model) (driver.Row, bool) { return m.release((*driver.Settlement)(s)) }

func (c *claim) from() string      { return c.Token }
func (r *renewal) from() string    { return r.Token }
func (s *settlement) from() string { return s.Token }

// requests makes random requests of few owners, events and moments, so that all
// of them meet. The times are multiples of the unit.
type requests struct {
	*rand.Rand
	c     *Config
	name  string
	clock int
	sent  []request
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// now is the time by the store's clock.
func (r *requests) now() time.Time { return noon.Add(r.units(r.clock)) }

func (*requests) units(n int) time.Duration { return time.Duration(n) * unit }

// soon returns a time of the next n units.
func (r *requests) soon(n int) time.Time { return r.now().Add(r.units(r.IntN(n))) }

// wall returns the clock of an owner. With a store that has a clock of its own,
// the owners' clocks may be hours apart; otherwise a few units.
func (r *requests) wall(token string) time.Time {
	switch {
	case !r.c.ServerClock:
		return r.soon(4)
	case token == "a":
		return r.now().Add(-5 * time.Hour)
	case token == "b":
		return r.now().Add(7 * time.Hour)
	}
	return r.now()
}

func (r *requests) pick(of ...string) string { return of[r.IntN(len(of))] }

// next returns a request to the row, or a copy of an earlier one. Time passes
// slowly.
func (r *requests) next(row driver.Row) request {
	r.clock += r.IntN(2)
	if n := len(r.sent); n > 0 && r.IntN(4) == 0 {
		return r.sent[n-1-r.IntN(min(n, []int{4, n}[r.IntN(2)]))]
	}
	request := r.make(row)
	r.sent = append(r.sent, request)
	return request
}

func (r *requests) make(row driver.Row) request {
	keep := noon.Add(time.Duration(24+r.IntN(5)) * time.Hour)
	token := r.pick("a", "b", "c", row.Token)
	switch r.IntN(10) {
	case 0, 1, 2, 3:
		return r.claim(keep)
	case 4, 5:
		now := r.wall(token)
		until := now.Add(r.units(r.IntN(8)))
		if row.Token == token && r.IntN(4) == 0 {
			until = row.Until // nothing but DeleteAfter moves
		}
		return &renewal{Name: r.name, Token: token, Now: now, Until: until, DeleteAfter: keep}
	case 6:
		return &settlement{Name: r.name, Token: token, DeleteAfter: keep}
	case 7, 8:
		return &settlement{Name: r.name, Token: token, DeleteAfter: keep, Memory: r.memory(token, row)}
	}
	return &settlement{Name: r.name, Token: token, DeleteAfter: keep, Abandon: true, Stamp: r.soon(4)}
}

func (r *requests) claim(keep time.Time) *claim {
	c := &claim{
		Name: r.name, Token: r.pick("a", "b", "c"), Holder: r.pick("h", "i"), Event: r.pick("", "e", "f"), Order: r.pick("", "", "1", "2", "3"),
		Stamp: r.soon(4), DeleteAfter: keep, // the stamp is as if raised above one that was seen
	}
	c.Now = r.wall(c.Token)
	c.Until = c.Now.Add(r.units(r.IntN(8)))
	if c.Event != "" {
		c.Payload = r.pick("", "p", "q")
	}
	return c
}

func (r *requests) memory(token string, row driver.Row) *driver.Memory {
	m := &driver.Memory{HighestOrder: r.pick(row.Memory.HighestOrder, "1", "2")}
	now := r.wall(token)
	for _, e := range []string{"e", "f", "g"} {
		if r.IntN(2) == 0 {
			m.Completed = append(m.Completed, driver.CompletedEvent{Event: e, Payload: r.pick("", "p", "q"), Until: now.Add(r.units(r.IntN(6)))})
		}
	}
	if n := len(m.Completed); n > 0 && r.IntN(2) == 0 {
		m.Result = driver.Result{Event: m.Completed[n-1].Event, Body: []byte(r.pick("x", "y"))}
	}
	return m
}
