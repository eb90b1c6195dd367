package explore

import (
	"fmt"
	"hash/maphash"
	"strings"
)

// Result is what an exploration found.
type Result struct {
	States int // different ones; all that the bounds allow if there is no violation
	Steps  int // from one to another, including those that lead to a known one
	Depth  int // the most steps from the first state to the nearest way to another
	// Rows and Requests are how many different ones there were.
	Rows, Requests int
	Violation      *Violation // nil: none

	tables *tables
}

func (r *Result) String() string {
	return fmt.Sprintf("%d states, %d steps, depth %d, %d rows, %d requests", r.States, r.Steps, r.Depth, r.Rows, r.Requests)
}

// Violation is a state that must not be, or a step that must not happen.
type Violation struct {
	What  string
	Trace []string // what happened, from the beginning
}

func (v *Violation) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, after %d steps:\n", v.What, len(v.Trace))
	for i, line := range v.Trace {
		fmt.Fprintf(&b, "%3d. %s\n", i+1, line)
	}
	return b.String()
}

// node is how a state was reached: by which of the steps that follow another.
type node struct {
	from uint32
	step uint16
}

// search goes through the states level by level. It knows a state by a 64-bit
// hash: among ten million states, two share one with a probability of about
// 1:370,000.
type search struct {
	*model
	seed  maphash.Seed
	seen  map[uint64]struct{}
	nodes []node
}

// Run visits every state within the bounds, or stops at the first violation.
func Run(b Bounds, rules Rules, plan Client, complete Complete) *Result {
	m := &model{tables: newTables(&b, &rules), complete: complete, plan: plan}
	s := &search{model: m, seed: maphash.MakeSeed(), seen: map[uint64]struct{}{}}
	r := &Result{tables: m.tables}
	first := m.start()
	s.add(first, node{})
	level, indexes := []state{*first}, []uint32{0}
	for len(level) > 0 && r.Violation == nil {
		var next []state
		var nextIndexes []uint32
		for i := range level {
			step := uint16(0)
			m.next(&level[i], func(_ action, n *state, bad string) {
				r.Steps++
				if s.add(n, node{indexes[i], step}) {
					next, nextIndexes = append(next, *n), append(nextIndexes, uint32(len(s.nodes)-1))
				}
				if bad != "" && r.Violation == nil {
					r.Violation = &Violation{What: bad, Trace: s.trace(node{indexes[i], step})}
				}
				step++
			})
			if r.Violation != nil {
				break
			}
		}
		if len(next) > 0 {
			r.Depth++
		}
		level, indexes = next, nextIndexes
	}
	r.States, r.Rows, r.Requests = len(s.nodes), len(m.rows), len(m.requests)-1
	return r
}

// add reports whether the state is new.
func (s *search) add(n *state, how node) bool {
	h := maphash.Comparable(s.seed, *n)
	if _, ok := s.seen[h]; ok {
		return false
	}
	s.seen[h] = struct{}{}
	s.nodes = append(s.nodes, how)
	return true
}

// trace tells how a step was reached, by taking all steps to it again.
func (s *search) trace(last node) []string {
	path := []uint16{last.step}
	for at := last.from; at != 0; at = s.nodes[at].from {
		path = append(path, s.nodes[at].step)
	}
	again := &model{tables: s.tables, complete: s.complete, plan: s.plan}
	now := again.start()
	var lines []string
	for i := len(path) - 1; i >= 0; i-- {
		var after state
		step := uint16(0)
		again.next(now, func(a action, n *state, _ string) {
			if step == path[i] {
				lines = append(lines, again.describe(a, n))
				after = *n
			}
			step++
		})
		now = &after
	}
	return lines
}

// describe tells a step and, if it concerns a row, what the row is afterwards.
func (m *model) describe(a action, n *state) string {
	if a.what == timePasses {
		return fmt.Sprintf("it is tick %d", n.now)
	}
	line := actions[a.what]
	if a.what != arrivesLate {
		line = fmt.Sprintf("%c %s", 'a'+a.client, line)
	}
	if a.request == 0 {
		cl := &n.clients[a.client]
		if cl.wire.state == sent {
			line += ": sends " + m.inWords(cl.wire.request)
		}
		return line
	}
	line += ": " + m.inWords(a.request)
	q := &m.requests[a.request]
	row := &m.rows[n.rows[q.name]]
	switch a.what {
	case arrives, arrivesTwice, arrivesAndWaits, arrivesSlowly, arrivesLate, beatArrives:
		line += fmt.Sprintf("; n%d now: owner %q, stamp %s, until %d", q.name, row.Token, stampText(row.stamp), row.until)
		for _, c := range row.Memory.Completed {
			line += fmt.Sprintf(", %s completed", c.Event)
		}
	}
	return line
}

func stampText(s int16) string {
	if s < 0 {
		return "none"
	}
	return fmt.Sprintf("%d.%d", s/stampsPerTick, s%stampsPerTick)
}

func (m *model) inWords(id int32) string {
	q := &m.requests[id]
	s := fmt.Sprintf("%s n%d by %s", q.op, q.name, tokenText(q.client, q.turn))
	switch q.op {
	case acquire:
		s += fmt.Sprintf(" (event %q, order %q, now %d, stamp %s, until %d)", q.Claim.Event, q.Claim.Order, q.now, stampText(q.stamp), q.until)
	case renewal:
		s += fmt.Sprintf(" (until %d)", q.until)
	case abandoned:
		s += fmt.Sprintf(" (stamp %s)", stampText(q.stamp))
	}
	return s
}
