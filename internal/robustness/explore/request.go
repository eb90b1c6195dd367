package explore

import (
	"fmt"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

type op int8

const (
	acquire op = iota + 1
	renewal
	released
	completed
	abandoned
)

func (o op) String() string {
	return [...]string{"", "acquire", "renew", "release", "complete", "abandon"}[o]
}

// ask is a request in short.
type ask struct {
	op         op
	client     int8
	turn       int8
	name       int8
	kind       int8
	now, until int8
	stamp      int16
	memory     int32
}

// Request is a request to a store: one of its fields is set.
type Request struct {
	Claim      *driver.Claim
	Renewal    *driver.Renewal
	Settlement *driver.Settlement
}

func (r Request) String() string {
	switch {
	case r.Claim != nil:
		return fmt.Sprintf("claim %+v", *r.Claim)
	case r.Renewal != nil:
		return fmt.Sprintf("renewal %+v", *r.Renewal)
	}
	s := *r.Settlement
	s.Memory = nil
	return fmt.Sprintf("settlement %+v with memory %+v", s, r.Settlement.Memory)
}

// request is one that was sent at least once.
type request struct {
	ask
	Request
}

// stored is a row, or one as an asker sees it, with its facts in short.
type stored struct {
	Stored
	owner      int8 // token plus one; 0: none
	until, end int8
	stamp      int16
	done       [maxEvents]int8
	highest    int8
	stuck      bool // nobody can take it, though nobody holds it
}

// result is what a request does to a row.
type result struct {
	after, answer int32
	ok            bool
	fenceRises    bool
}

type step struct {
	row, request int32
	at           int8
}

// tables give numbers to rows, requests and memories, so that a state is small
// and every step is computed once.
type tables struct {
	bounds   *Bounds
	rules    *Rules
	requests []request
	asks     map[ask]int32
	rows     []stored
	rowIDs   map[string]int32
	memories []driver.Memory
	memIDs   map[string]int32
	steps    map[step]result
	verdicts map[step]driver.Verdict
	events   map[string]int
}

func newTables(b *Bounds, rules *Rules) *tables {
	t := &tables{
		bounds: b, rules: rules, asks: map[ask]int32{}, rowIDs: map[string]int32{}, memIDs: map[string]int32{},
		steps: map[step]result{}, verdicts: map[step]driver.Verdict{}, events: map[string]int{},
		requests: make([]request, 1), // 0 is none
	}
	for _, k := range b.Kinds {
		if _, ok := t.events[k.Event]; k.Event != "" && !ok {
			t.events[k.Event] = len(t.events)
		}
	}
	t.row(Stored{}) // the first number is that of no row
	return t
}

func (t *tables) token(client, turn int8) int8 { return client*int8(t.bounds.Turns) + turn }

// text returns the token as it is in rows. The number of the invocation follows
// the letter of the client.
func tokenText(client, turn int8) string { return fmt.Sprintf("%c%d", 'a'+client, turn+1) }

func (t *tables) ownerOf(token string) int8 {
	if token == "" {
		return 0
	}
	return t.token(int8(token[0]-'a'), int8(token[1]-'1')) + 1
}

func (t *tables) request(a ask) int32 {
	id, ok := t.asks[a]
	if !ok {
		id = int32(len(t.requests))
		t.asks[a] = id
		t.requests = append(t.requests, request{a, t.spell(a)})
	}
	return id
}

// spell returns the request that a stands for.
func (t *tables) spell(a ask) Request {
	const day = 24 * time.Hour
	name, token := fmt.Sprint("n", a.name), tokenText(a.client, a.turn)
	switch a.op {
	case acquire:
		kind := t.bounds.Kinds[a.kind]
		return Request{Claim: &driver.Claim{
			Name: name, Event: kind.Event, Order: kind.Order, Token: token, Holder: "client " + token,
			Now: at(a.now), Stamp: stampAt(a.stamp), Until: at(a.until), DeleteAfter: at(a.until).Add(366 * day),
		}}
	case renewal:
		return Request{Renewal: &driver.Renewal{Name: name, Token: token, Now: at(a.now), Until: at(a.until), DeleteAfter: at(a.until).Add(366 * day)}}
	}
	s := &driver.Settlement{Name: name, Token: token, DeleteAfter: zero.Add(2 * day), Abandon: a.op == abandoned, Stamp: stampAt(a.stamp)}
	if a.op == completed {
		s.Memory = &t.memories[a.memory]
	}
	return Request{Settlement: s}
}

func (t *tables) memory(m driver.Memory) int32 {
	key := memoryKey(&m)
	id, ok := t.memIDs[key]
	if !ok {
		id = int32(len(t.memories))
		t.memIDs[key] = id
		t.memories = append(t.memories, m)
	}
	return id
}

func memoryKey(m *driver.Memory) string {
	var b strings.Builder
	for _, c := range m.Completed {
		fmt.Fprintf(&b, "%s %d\n", c.Event, c.Until.UnixMilli())
	}
	return b.String() + m.HighestOrder
}

// row returns the number of a row. Rows that differ only in the height of their
// fences, which decides nothing, are one.
func (t *tables) row(r Stored) int32 {
	r.Previous = ""
	key := fmt.Sprintf("%s %d %d %d %v %s %s", r.Token, r.Stamp.UnixMicro(), r.Until.UnixMicro(), r.End.UnixMicro(), r.Fence == 0, r.Event, memoryKey(&r.Memory))
	id, ok := t.rowIDs[key]
	if !ok {
		id = int32(len(t.rows))
		t.rowIDs[key] = id
		t.rows = append(t.rows, t.inShort(r))
	}
	return id
}

func (t *tables) inShort(r Stored) stored {
	s := stored{
		Stored: r, owner: t.ownerOf(r.Token), until: ticksOf(r.Until), end: ticksOf(r.End), stamp: stampOf(r.Stamp),
		done: [maxEvents]int8{-1, -1},
	}
	for _, c := range r.Memory.Completed {
		s.done[t.events[c.Event]] = ticksOf(c.Until)
	}
	s.highest = orderOf(r.Memory.HighestOrder)
	s.stuck = t.isStuck(r)
	return s
}

func orderOf(order string) int8 {
	if order == "" {
		return 0
	}
	return int8(order[0] - '0')
}

// isStuck reports whether a claimant cannot take the row, once nobody holds it,
// by raising its stamp once (P4).
func (t *tables) isStuck(r Stored) bool {
	c := &driver.Claim{Token: "z1", Now: zero, Stamp: zero}
	var server time.Time
	if r.Token != "" {
		c.Now = r.Until.Add(tick)
	}
	if t.bounds.ServerClock {
		server = zero
		if r.Token != "" {
			server = r.End.Add(tick)
		}
	}
	c.Until = c.Now.Add(tick)
	for range 2 {
		_, seen, ok := r.Acquire(t.rules, c, server)
		if ok {
			return false
		}
		c.Stamp = seen.Stamp.Add(time.Microsecond)
	}
	return true
}

// apply returns what a request does to a row at a time.
func (t *tables) apply(row, id int32, now int8) result {
	if !t.bounds.ServerClock {
		now = 0
	}
	key := step{row, id, now}
	r, ok := t.steps[key]
	if !ok {
		r = t.compute(t.rows[row].Stored, &t.requests[id], now)
		t.steps[key] = r
	}
	return r
}

func (t *tables) compute(row Stored, q *request, now int8) result {
	server := time.Time{}
	if t.bounds.ServerClock {
		server = at(now)
	}
	var after Stored
	var answer driver.Row
	var ok bool
	switch {
	case q.Claim != nil:
		after, answer, ok = row.Acquire(t.rules, q.Claim, server)
	case q.Renewal != nil:
		after, answer, ok = row.Renew(t.rules, q.Renewal, server)
	default:
		after, answer, ok = row.Settle(t.rules, q.Settlement)
	}
	return result{t.row(after), t.row(Stored{Row: answer}), ok, after.Fence > row.Fence}
}

// verdict returns what the claimant reads from the row that refused its claim.
func (t *tables) verdict(row, id int32) driver.Verdict {
	key := step{row: row, request: id}
	v, ok := t.verdicts[key]
	if !ok {
		v = t.rules.Judge(&t.rows[row].Row, t.requests[id].Claim)
		t.verdicts[key] = v
	}
	return v
}
