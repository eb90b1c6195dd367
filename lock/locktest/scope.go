package locktest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// everyRequest compares a store with the rules of [driver.Row] on every request
// of a small scope to every row that these requests can make. It tries some of
// these pairs, always the same ones; with LAMBDALOCK_DEPTH=long all of them.
func everyRequest(f *fixture) { // F1, F3, F4, F5, F21, F44
	_, coalescer := f.store.(driver.Coalescer)
	known := scope(time.Time{}, "", false)
	ways, requests := waysByClaimant(), len(known)
	if f.Advance != nil {
		ways = waysByStore()
	}
	pairs := 1500
	switch {
	case os.Getenv("LAMBDALOCK_DEPTH") == "long":
		pairs = len(ways) * requests
	case testing.Short():
		pairs = 300
	}
	random := rand.New(rand.NewPCG(1, 7))
	for _, w := range ways {
		if !coalescer && slices.ContainsFunc(w, func(s int) bool { return s != tick && known[s].coalesces() }) {
			continue
		}
		var c *comparison // with the row; nil: it has to be made anew
		var all []request
		for i := range requests {
			if random.IntN(len(ways)*requests) >= pairs || !coalescer && known[i].coalesces() {
				continue
			}
			if c == nil {
				c = f.compare()
				all = scope(c.now, c.name, c.clocked)
				for _, q := range all {
					if q.claim != nil && !coalescer {
						q.claim.TakesMarks = false
					}
					if q.claim != nil && !f.keepsInterrupted() {
						q.claim.InterruptedFor = 0
					}
				}
				for _, s := range w {
					if s == tick {
						c.advance(unit)
					} else {
						c.send(all[s])
					}
				}
			}
			before := stateOf(&c.rules, 0)
			c.send(all[i])
			f.now = c.now
			if stateOf(&c.rules, 0) != before {
				c = nil
			}
		}
	}
}

// way is how a row is made: by the requests of a scope with these indices, and
// ticks of the store's clock.
type way []int

const (
	tick  = -1
	ticks = 3
)

var (
	waysByClaimant = sync.OnceValue(func() []way { return ways(false) })
	waysByStore    = sync.OnceValue(func() []way { return ways(true) })
)

// ways returns a shortest way to every row.
func ways(clocked bool) []way {
	type node struct {
		rules
		now int
		way way
	}
	began := time.Unix(1_800_000_000, 0).UTC()
	all := scope(began, "", clocked)
	first := node{rules: rules{clocked: clocked}}
	nodes, known := []node{first}, map[string]bool{stateOf(&first.rules, 0): true}
	for i := 0; i < len(nodes); i++ {
		n := nodes[i]
		add := func(next node, step int) {
			if key := stateOf(&next.rules, next.now); !known[key] {
				known[key] = true
				next.way = append(n.way[:len(n.way):len(n.way)], step)
				nodes = append(nodes, next)
			}
		}
		if clocked && n.now < ticks {
			later := n
			later.now++
			add(later, tick)
		}
		for step, q := range all {
			next := n
			next.apply(q, began.Add(time.Duration(n.now)*unit))
			if next.row.Marks < 2 {
				add(next, step)
			}
		}
	}
	found := make([]way, len(nodes))
	for i, n := range nodes {
		found[i] = n.way
	}
	return found
}

// stateOf returns a text that is different for rows that requests meet
// differently.
func stateOf(r *rules, now int) string {
	row, end := r.row, r.end
	if row.Token == "" {
		end = time.Time{}
	}
	return fmt.Sprint(now, end.UnixMicro(), row.Token, row.Cooldown, row.Marks, row.TakesMarks, row.Stamp.UnixMicro(), row.Until.UnixMicro(), row.Event, row.Memory.HighestOrder, row.Memory.Completed, row.InterruptedFor, row.Memory.Interrupted)
}

// scope returns the requests of two owners at a few moments from began.
func scope(began time.Time, name string, clocked bool) []request {
	at := func(n int) time.Time { return began.Add(time.Duration(n) * unit) }
	keep := began.Add(24 * time.Hour)
	half := time.Duration(0)
	if clocked { // leases end between two moments, because the clock does not stand still
		half = unit / 2
	}
	var all []request
	for _, token := range []string{"a", "b"} {
		wall := func(n int) time.Time {
			if clocked && token == "b" {
				return at(n).Add(7 * time.Hour)
			}
			return at(n)
		}
		for n := range ticks {
			for _, k := range []struct {
				event, order string
				interrupted  time.Duration
			}{{"", "", 0}, {"e", "", 0}, {"", "1", 0}, {"f", "2", 4 * unit}} {
				all = append(all, request{claim: &driver.Claim{
					Name: name, Token: token, Holder: "h", Event: k.event, Order: k.order, InterruptedFor: k.interrupted,
					Now: wall(n), Stamp: at(n), Until: wall(n + 1).Add(half), DeleteAfter: keep, TakesMarks: token == "b",
				}})
			}
			all = append(all,
				request{renewal: &driver.Renewal{Name: name, Token: token, Now: wall(1), Until: wall(n + 1).Add(half), DeleteAfter: keep}},
				request{settlement: &driver.Settlement{Name: name, Token: token, DeleteAfter: keep, Abandon: true, Stamp: at(n)}})
		}
		completed := []driver.CompletedEvent{{Event: "e", Until: at(2)}}
		for _, m := range []*driver.Memory{nil, {Completed: completed}, {Completed: completed, HighestOrder: "1"}, {HighestOrder: "2"}} {
			all = append(all, request{settlement: &driver.Settlement{Name: name, Token: token, DeleteAfter: keep, Memory: m}})
		}
		all = append(all, request{settlement: &driver.Settlement{
			Name: name, Token: token, DeleteAfter: keep, Memory: &driver.Memory{HighestOrder: "1"}, Now: wall(1), Until: wall(2).Add(half), CooldownToken: "cools",
		}}, request{mark: &driver.Mark{Name: name, Token: token, Stamp: at(1)}}, request{mark: &driver.Mark{Name: name, Token: token, Close: true}}, request{settlement: &driver.Settlement{
			Name: name, Token: token, DeleteAfter: keep, MarksBelow: 1,
		}})
	}
	return append(all, request{settlement: &driver.Settlement{Name: name, Token: "cools", DeleteAfter: keep}}) // by people
}
