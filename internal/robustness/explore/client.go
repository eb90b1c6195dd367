package explore

import "github.com/lambdalock/lambdalock/lock/driver"

// Client is how a client decides, where a mistake would be easy.
type Client struct {
	// Abandons reports whether a claim that ends without the lock is given up.
	// verdict is that of the last answer, or -1.
	Abandons func(unsure bool, verdict driver.Verdict) bool
	// LeaseFrom returns from when the holder counts its lease.
	LeaseFrom func(claimed, answered int8) int8
	// Raises reports whether a claimant that is told that its stamp is too low
	// raises it.
	Raises bool
	// Believes reports whether a refused completion counts as done if an attempt
	// had no answer and the row remembers the event, or does not.
	Believes func(remembered bool) bool
	// Margin is how long before its end a lease counts as lost.
	Margin int
}

// Careful returns how clients of package lock decide.
func Careful(grace int) Client {
	return Client{
		Abandons:  func(unsure bool, _ driver.Verdict) bool { return unsure },
		LeaseFrom: func(claimed, _ int8) int8 { return claimed },
		Raises:    true,
		Believes:  func(remembered bool) bool { return remembered },
		Margin:    grace,
	}
}

// decide emits what the client itself may do next.
func (m *model) decide(s *state, c int8) {
	cl := &s.clients[c]
	if cl.wire.state == answered {
		m.do(s, action{getsAnswer, c, cl.wire.request}, func(n *state) string { return m.read(n, c, false) })
	}
	switch cl.phase {
	case idle:
		m.begin(s, c)
	case waiting:
		m.do(s, action{what: looksAgain, client: c}, func(n *state) string { m.ask(n, c); return "" })
	case asking:
		if cl.wire.state == answered && m.mayWait(cl, cl.wire.ok, cl.wire.answer) {
			m.do(s, action{waits, c, cl.wire.request}, func(n *state) string { return m.read(n, c, true) })
		}
	case holding:
		kind := m.bounds.Kinds[m.requests[cl.claim].kind]
		if kind != (Kind{}) {
			m.do(s, action{what: finishes, client: c}, func(n *state) string { m.settle(n, c, true); return "" })
		}
		m.do(s, action{what: fails, client: c}, func(n *state) string { m.settle(n, c, false); return "" })
	}
	if m.bounds.Heartbeat {
		m.heartbeat(s, c)
	}
}

// mayWait reports whether an answer is one after which a claimant may wait.
func (m *model) mayWait(cl *client, ok bool, answer int32) bool {
	id := cl.wire.request
	return cl.phase == asking && !ok && int(cl.round) < m.bounds.Rounds &&
		m.rows[answer].owner != m.tokenOf(id) && m.verdict(answer, id) == driver.Held
}

func (m *model) tokenOf(id int32) int8 {
	q := &m.requests[id]
	return m.token(q.client, q.turn) + 1
}

// begin emits the invocations that the client may begin with. Clients that do
// not differ begin in order, the first with the first name and kind.
func (m *model) begin(s *state, c int8) {
	if int(s.clients[c].turn) == m.bounds.Turns {
		return
	}
	first := true
	for other := range int8(m.bounds.Clients) {
		fresh := s.clients[other].turn == 0 && s.clients[other].phase == idle
		first = first && fresh
		if other < c && fresh && s.clients[c].turn == 0 && m.bounds.Skew[other] == m.bounds.Skew[c] {
			return
		}
	}
	for name := range int8(m.bounds.Names) {
		for kind := range int8(len(m.bounds.Kinds)) {
			if first && name > 0 {
				return
			}
			m.do(s, action{what: begins, client: c}, func(n *state) string {
				cl := &n.clients[c]
				cl.phase = asking
				cl.claim = m.request(ask{op: acquire, client: c, turn: cl.turn, name: name, kind: kind, until: -1, stamp: -1})
				m.ask(n, c)
				return ""
			})
		}
	}
}

// ask sends the claim of a round, dated anew.
func (m *model) ask(n *state, c int8) {
	cl := &n.clients[c]
	a := m.requests[cl.claim].ask
	cl.floor = max(cl.floor, a.stamp)
	a.now = m.clock(n, c)
	cl.lastStamp = max(int16(a.now)*stampsPerTick, cl.lastStamp+1)
	a.stamp = max(cl.lastStamp, cl.floor+1)
	a.until = max(a.now+int8(m.bounds.Lease), a.until)
	cl.claim = m.request(a)
	cl.phase = asking
	cl.wire = wire{request: cl.claim, state: sent}
}

// read lets the client act on an answer.
func (m *model) read(n *state, c int8, wait bool) string {
	cl := &n.clients[c]
	w := cl.wire
	cl.wire = wire{}
	switch cl.phase {
	case asking:
		return m.readClaim(n, c, &w, wait)
	case settling:
		return m.readSettlement(n, c, &w)
	}
	m.end(n, c)
	return ""
}

func (m *model) readClaim(n *state, c int8, w *wire, wait bool) string {
	cl := &n.clients[c]
	q, row := &m.requests[w.request], &m.rows[w.answer]
	if w.ok || row.owner == m.tokenOf(w.request) {
		m.hold(n, c, q, w.answer)
		return ""
	}
	bad := ""
	verdict := m.verdict(w.answer, w.request)
	switch verdict {
	case driver.Completed:
		if n.past[q.name].done[m.events[m.bounds.Kinds[q.kind].Event]] < q.now {
			bad = "P6: an event was acknowledged that is not completed"
		}
	case driver.Stale:
		if orderOf(m.bounds.Kinds[q.kind].Order) > n.past[q.name].highest {
			bad = "P6: an event was acknowledged as stale, and none of a later order is completed"
		}
	case driver.Held:
		if wait {
			cl.round++
			cl.asked, cl.phase = 0, waiting
			return ""
		}
	case driver.Behind:
		if m.plan.Raises {
			cl.floor = max(cl.floor, row.stamp)
		}
		if cl.asked++; cl.asked <= 3 {
			m.ask(n, c)
			return ""
		}
		bad = "P4: nobody holds the name, and four claims were refused"
	}
	m.giveUp(n, c, verdict)
	return bad
}

// hold begins the work, or drops the lock if its lease has nearly ended.
func (m *model) hold(n *state, c int8, q *request, row int32) {
	cl := &n.clients[c]
	until := min(q.until, m.rows[row].until) + m.plan.LeaseFrom(q.now, m.clock(n, c)) - q.now
	cl.phase, cl.row, cl.until, cl.running = holding, row, until, true
	m.stopLate(n, c)
	if !cl.running {
		m.settle(n, c, false)
	}
}

// giveUp ends a claim without the lock.
func (m *model) giveUp(n *state, c int8, verdict driver.Verdict) {
	cl := &n.clients[c]
	if !m.plan.Abandons(cl.unsure, verdict) {
		m.end(n, c)
		return
	}
	q := m.requests[cl.claim]
	cl.phase = abandoning
	cl.wire = wire{state: sent, request: m.request(ask{op: abandoned, client: c, turn: cl.turn, name: q.name, stamp: q.stamp})}
}

func (m *model) readSettlement(n *state, c int8, w *wire) string {
	cl := &n.clients[c]
	q := m.requests[w.request]
	bad := ""
	if q.op == completed {
		kind := m.bounds.Kinds[q.kind]
		event := m.events[kind.Event]
		row, past, clock := &m.rows[w.answer], &n.past[q.name], m.clock(n, c)
		remembered := kind.Event != "" && row.done[event] >= clock || kind.Event == "" && row.highest >= orderOf(kind.Order)
		if !w.ok && !(cl.unsure && m.plan.Believes(remembered)) {
			m.end(n, c) // lost
			return ""
		}
		if kind.Event != "" && past.done[event] < min(clock, q.until) || kind.Event == "" && past.highest < orderOf(kind.Order) {
			bad = "P5: a completion was confirmed, and nothing remembers it"
		}
	}
	m.end(n, c)
	return bad
}

// settle ends the work.
func (m *model) settle(n *state, c int8, completes bool) {
	cl := &n.clients[c]
	q := &m.requests[cl.claim]
	a := ask{op: released, client: c, turn: cl.turn, name: q.name, stamp: m.rows[cl.row].stamp}
	if completes {
		now := m.clock(n, c)
		a.op, a.kind, a.until = completed, q.kind, now+int8(m.bounds.Remember)
		a.memory = m.memory(m.complete(m.rows[cl.row].Memory, m.bounds.Kinds[q.kind], at(now), at(a.until)))
	} else {
		m.stopBeat(n, cl)
	}
	cl.phase, cl.running, cl.completes, cl.unsure = settling, false, completes, false
	cl.wire = wire{state: sent, request: m.request(a)}
}

// stopBeat ends the heartbeat. A renewal that is under way may still arrive.
func (m *model) stopBeat(n *state, cl *client) {
	if cl.beat.state == sent {
		n.keepLate(cl.beat.request)
	}
	cl.beat = wire{}
}

// end ends the invocation.
func (m *model) end(n *state, c int8) {
	cl := &n.clients[c]
	m.stopBeat(n, cl)
	*cl = client{turn: cl.turn + 1, lastStamp: cl.lastStamp}
	if int(cl.turn) == m.bounds.Turns {
		cl.lastStamp = 0 // it means nothing any more
	}
}

func (m *model) heartbeat(s *state, c int8) {
	cl := &s.clients[c]
	beats := cl.phase == holding && cl.running || cl.phase == settling && cl.completes
	clock := m.clock(s, c)
	until := clock + int8(m.bounds.Lease)
	switch {
	case cl.beat.state == answered:
		m.do(s, action{beatAnswered, c, cl.beat.request}, func(n *state) string { m.readBeat(n, c); return "" })
	case cl.beat.state == silent && beats && clock < cl.until-int8(m.plan.Margin) && until > cl.until:
		m.do(s, action{what: renews, client: c}, func(n *state) string {
			q := &m.requests[cl.claim]
			n.clients[c].beat = wire{state: sent, request: m.request(ask{op: renewal, client: c, turn: cl.turn, name: q.name, now: clock, until: until})}
			return ""
		})
	}
	if cl.beat.state != silent && s.unanswered > 0 {
		m.do(s, action{beatLost, c, cl.beat.request}, func(n *state) string {
			n.unanswered--
			m.stopBeat(n, &n.clients[c])
			return ""
		})
	}
}

func (m *model) readBeat(n *state, c int8) {
	cl := &n.clients[c]
	w := cl.beat
	cl.beat = wire{}
	q, row := &m.requests[w.request], &m.rows[w.answer]
	if longer := row.owner == m.tokenOf(w.request) && row.until >= q.until; w.ok || longer {
		cl.until = max(cl.until, q.until, row.until)
	} else {
		cl.running = false
	}
}

// fail emits what may go wrong.
func (m *model) fail(s *state, c int8) {
	cl := &s.clients[c]
	if cl.phase == idle {
		return
	}
	if s.unanswered > 0 && cl.wire.state != silent {
		for _, a := range []what{getsNothing, getsNothingAndEnds} {
			m.do(s, action{a, c, cl.wire.request}, func(n *state) string { m.noAnswer(n, c, a == getsNothingAndEnds); return "" })
		}
	}
	if s.rejected > 0 && cl.wire.state == sent {
		m.do(s, action{isRejected, c, cl.wire.request}, func(n *state) string {
			n.rejected--
			m.noMore(n, c)
			return ""
		})
	}
	if s.crashes > 0 {
		m.do(s, action{what: crashes, client: c}, func(n *state) string {
			n.crashes--
			m.crash(n, c)
			return ""
		})
	}
	if s.freezes > 0 {
		m.do(s, action{what: freezes, client: c}, func(n *state) string {
			n.freezes--
			n.clients[c].frozen = true
			return ""
		})
	}
}

func (m *model) crash(n *state, c int8) {
	cl := &n.clients[c]
	if cl.wire.state == sent {
		n.keepLate(cl.wire.request)
	}
	n.exempt |= 1 << m.token(c, cl.turn)
	m.end(n, c)
}

// noAnswer lets a request time out. If it has not arrived yet, it may still.
func (m *model) noAnswer(n *state, c int8, ends bool) {
	cl := &n.clients[c]
	w := cl.wire
	n.unanswered--
	cl.unsure = true
	if w.state == sent {
		n.keepLate(w.request)
	}
	if ends {
		m.noMore(n, c)
		return
	}
	cl.wire = wire{request: w.request, state: sent}
}

// noMore lets the client give up a request.
func (m *model) noMore(n *state, c int8) {
	cl := &n.clients[c]
	cl.wire = wire{}
	if cl.phase == asking {
		m.giveUp(n, c, -1)
		return
	}
	n.exempt |= 1 << m.token(c, cl.turn)
	m.end(n, c)
}
