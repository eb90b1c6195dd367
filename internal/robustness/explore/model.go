package explore

import (
	"cmp"
	"fmt"
)

type phase int8

const (
	idle phase = iota
	asking
	waiting // between the rounds of a claim that was refused
	abandoning
	holding
	settling
)

// wire is one request between a client and the store.
type wire struct {
	request int32 // 0: none
	answer  int32 // row
	state   wireState
	ok      bool
}

type wireState int8

const (
	silent wireState = iota
	sent
	answered
)

// client is one execution environment: it does one invocation after the other.
type client struct {
	wire  wire // claim or settlement
	beat  wire // renewal
	claim int32
	row   int32 // as it was acquired
	// lastStamp is the highest stamp that the client used, floor the one that its
	// next must be above.
	lastStamp, floor int16
	until            int8 // end of the lease as last confirmed
	turn             int8
	phase            phase
	round, asked     int8
	unsure           bool // a request had no answer
	running          bool // the work is, and its context has not ended
	completes        bool
	frozen           bool
}

// past is what happened to a name: what the invariants compare with.
type past struct {
	done    [maxEvents]int8 // until when an event stays completed; -1: it was not
	highest int8            // order
}

// state is one state of the whole system.
type state struct {
	clients [maxClients]client
	late    [maxLate]int32 // requests that may still arrive, in descending order
	rows    [maxNames]int32
	past    [maxNames]past
	exempt  uint16 // tokens whose row may stay held until the lease ends

	unanswered, slow, rejected, copies, crashes, freezes int8 // left
	now                                                  int8
}

// model is the protocol: what clients, network and store may do next.
type model struct {
	*tables
	complete Complete
	plan     Client
	scratch  state
	emit     func(action, *state, string)
}

type what int8

const (
	begins what = iota
	getsAnswer
	waits
	arrivesAndWaits
	arrivesSlowly
	looksAgain
	getsNothing
	getsNothingAndEnds
	isRejected
	finishes
	fails
	renews
	beatAnswered
	beatLost
	crashes
	freezes
	thaws
	arrives
	arrivesTwice
	beatArrives
	arrivesLate
	timePasses
)

var actions = [...]string{
	"begins", "gets the answer", "gets the answer and waits", "is answered and waits", "its request arrives, and its answer is slow", "asks again", "gets no answer and tries again", "gets no answer and gives up",
	"is rejected and gives up", "completes its work", "fails", "renews its lease", "gets the answer to its renewal", "gets no answer to its renewal",
	"crashes", "freezes", "thaws", "is answered", "is answered, and a copy is under way", "its renewal arrives", "a late copy arrives",
	"time passes",
}

type action struct {
	what    what
	client  int8
	request int32
}

func (m *model) start() *state {
	b := m.bounds
	s := &state{
		unanswered: int8(b.Unanswered), slow: int8(b.Slow), rejected: int8(b.Rejected), copies: int8(b.Copies), crashes: int8(b.Crashes), freezes: int8(b.Freezes),
	}
	for n := range s.past {
		s.past[n].done = [maxEvents]int8{-1, -1}
	}
	return s
}

func (m *model) clock(s *state, c int8) int8 { return s.now + int8(m.bounds.Skew[c]) }

// next emits every state that follows s, with what is wrong about the step.
func (m *model) next(s *state, emit func(action, *state, string)) {
	m.emit = emit
	for c := range int8(m.bounds.Clients) {
		m.network(s, c)
		if s.clients[c].frozen {
			m.do(s, action{what: thaws, client: c}, func(n *state) string {
				n.clients[c].frozen = false
				m.stopLate(n, c)
				return ""
			})
			continue
		}
		m.decide(s, c)
		m.fail(s, c)
	}
	for i, id := range s.late {
		if id == 0 || i > 0 && id == s.late[i-1] {
			continue
		}
		q := &m.requests[id]
		if m.apply(s.rows[q.name], id, s.now).after == s.rows[q.name] {
			continue // without effect, as if it never arrived
		}
		m.do(s, action{arrivesLate, q.client, id}, func(n *state) string {
			copy(n.late[i:], n.late[i+1:])
			n.late[maxLate-1] = 0
			_, bad := m.arrive(n, id)
			return bad
		})
	}
	if int(s.now) < m.bounds.Ticks {
		m.do(s, action{what: timePasses}, func(n *state) string {
			n.now++
			for c := range int8(m.bounds.Clients) {
				if !n.clients[c].frozen {
					m.stopLate(n, c)
				}
			}
			return ""
		})
	}
}

// do emits the state that change makes of s.
func (m *model) do(s *state, a action, change func(*state) string) {
	n := &m.scratch
	*n = *s
	bad := change(n)
	m.forget(n)
	if bad == "" {
		bad = m.check(n)
	}
	m.emit(a, n, bad)
}

// forget drops what means nothing any more.
func (m *model) forget(n *state) {
	for t := int8(0); n.exempt>>t != 0; t++ {
		if n.exempt&(1<<t) != 0 && !m.mayOwn(n, t) {
			n.exempt &^= 1 << t
		}
	}
}

// mayOwn reports whether a token owns a row or may still get one.
func (m *model) mayOwn(n *state, token int8) bool {
	for _, id := range n.rows {
		if m.rows[id].owner == token+1 {
			return true
		}
	}
	for _, id := range n.late {
		if id != 0 && m.tokenOf(id) == token+1 {
			return true
		}
	}
	return false
}

// stopLate ends the work whose lease is about to end.
func (m *model) stopLate(n *state, c int8) {
	cl := &n.clients[c]
	if cl.running && m.clock(n, c) >= cl.until-int8(m.plan.Margin) {
		cl.running = false
	}
}

// network lets the client's requests arrive.
func (m *model) network(s *state, c int8) {
	cl := &s.clients[c]
	if cl.wire.state == sent && !cl.frozen {
		m.do(s, action{arrives, c, cl.wire.request}, func(n *state) string { return cmp.Or(m.deliver(n, &n.clients[c].wire), m.read(n, c, false)) })
		r := m.apply(s.rows[m.requests[cl.wire.request].name], cl.wire.request, s.now)
		if s.copies > 0 && r.ok { // a refusal that its sender gets has no copies
			m.do(s, action{arrivesTwice, c, cl.wire.request}, func(n *state) string {
				n.copies--
				n.keepLate(cl.wire.request)
				return cmp.Or(m.deliver(n, &n.clients[c].wire), m.read(n, c, false))
			})
		}
		if m.mayWait(cl, r.ok, r.answer) {
			m.do(s, action{arrivesAndWaits, c, cl.wire.request}, func(n *state) string { return cmp.Or(m.deliver(n, &n.clients[c].wire), m.read(n, c, true)) })
		}
	}
	if cl.wire.state == sent && (s.slow > 0 || cl.frozen) {
		m.do(s, action{arrivesSlowly, c, cl.wire.request}, func(n *state) string {
			if !cl.frozen {
				n.slow--
			}
			return m.deliver(n, &n.clients[c].wire)
		})
	}
	if cl.beat.state == sent {
		m.do(s, action{beatArrives, c, cl.beat.request}, func(n *state) string {
			bad := m.deliver(n, &n.clients[c].beat)
			if !cl.frozen {
				m.readBeat(n, c)
			}
			return bad
		})
	}
}

func (m *model) deliver(n *state, w *wire) string {
	r, bad := m.arrive(n, w.request)
	w.state, w.ok, w.answer = answered, r.ok, r.answer
	return bad
}

func (n *state) keepLate(id int32) {
	for i, other := range n.late {
		if other < id {
			if n.late[maxLate-1] != 0 {
				panic("more late requests than a state has room for")
			}
			copy(n.late[i+1:], n.late[i:])
			n.late[i] = id
			return
		}
	}
	panic("more late requests than a state has room for")
}

// arrive applies a request to its row, and returns what is wrong about that.
func (m *model) arrive(n *state, id int32) (result, string) {
	q := &m.requests[id]
	before := n.rows[q.name]
	r := m.apply(before, id, n.now)
	n.rows[q.name] = r.after
	if !r.ok || r.after == before {
		return r, ""
	}
	old, now, p := &m.rows[before], &m.rows[r.after], &n.past[q.name]
	switch q.op {
	case acquire:
		return r, m.granted(n, q, old, r)
	case completed:
		kind := m.bounds.Kinds[q.kind]
		if kind.Event != "" {
			p.done[m.events[kind.Event]] = q.until
		}
		p.highest = max(p.highest, orderOf(kind.Order))
	}
	if old.owner != 0 && old.owner != m.token(q.client, q.turn)+1 && now.owner != old.owner {
		return r, "P1: a request of another token released the name"
	}
	return r, ""
}

// granted returns what is wrong about a grant.
func (m *model) granted(n *state, q *request, old *stored, r result) string {
	own := m.token(q.client, q.turn) + 1
	kind, p := m.bounds.Kinds[q.kind], &n.past[q.name]
	held := old.until >= q.now
	if m.bounds.ServerClock {
		held = old.end >= n.now
	}
	if old.owner != 0 && old.owner != own && held {
		return "P1: the name was taken over before its lease had ended"
	}
	if old.owner != own && !r.fenceRises {
		return "P3: the fence did not rise"
	}
	if kind.Event != "" && p.done[m.events[kind.Event]] >= q.now {
		return "P5: a completed event was granted again"
	}
	if kind.Order != "" && orderOf(kind.Order) <= p.highest {
		return "P5: an event was granted after one of a later order was completed"
	}
	return ""
}

// check returns what is wrong about a state.
func (m *model) check(s *state) string {
	for name := range m.bounds.Names {
		row, p := &m.rows[s.rows[name]], &s.past[name]
		for e, until := range p.done {
			if until >= s.now && row.done[e] < until {
				return fmt.Sprintf("P5: n%d forgot a completed event", name)
			}
		}
		if row.highest < p.highest {
			return fmt.Sprintf("P5: n%d forgot the highest order", name)
		}
		if row.stuck {
			return fmt.Sprintf("P4: nobody holds n%d, and nobody can take it", name)
		}
		end := row.until
		if m.bounds.ServerClock {
			end = row.end
		}
		if row.owner != 0 && end >= s.now && s.exempt&(1<<(row.owner-1)) == 0 && m.over(s, row.owner-1) {
			return fmt.Sprintf("P4: n%d is held for nobody", name)
		}
	}
	for c := range int8(m.bounds.Clients) {
		cl := &s.clients[c]
		if !cl.running || m.clock(s, c) >= cl.until-int8(m.plan.Margin) {
			continue // a frozen one is not stopped
		}
		if m.rows[s.rows[m.requests[cl.claim].name]].owner != m.token(c, cl.turn)+1 {
			return fmt.Sprintf("P2: client %c works, and does not hold its name any more", 'a'+c)
		}
	}
	return ""
}

// over reports whether the invocation with a token has ended.
func (m *model) over(s *state, token int8) bool {
	turns := int8(m.bounds.Turns)
	return s.clients[token/turns].turn > token%turns
}
