package locktest

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// unit is the time between two moments of a comparison. It is long beside what
// a running clock moves on between two requests.
const unit = 30 * time.Second

// rules are a row as the methods of [driver.Row] make it.
type rules struct {
	row     driver.Row
	clocked bool      // the store judges leases by its own clock
	end     time.Time // of the lease by that clock
	other   time.Time // zero, or another end that the last request may have set
}

// request is one request to a store: one that is not nil, or else a join.
type request struct {
	claim      *driver.Claim
	renewal    *driver.Renewal
	settlement *driver.Settlement
	mark       *driver.Mark
}

// coalesces reports whether only a [driver.Coalescer] knows the request.
func (q request) coalesces() bool {
	return q.mark != nil || q.settlement != nil && q.settlement.MarksBelow > 0
}

func (q request) String() string {
	switch {
	case q.claim != nil:
		return fmt.Sprintf("claim %+v", *q.claim)
	case q.renewal != nil:
		return fmt.Sprintf("renewal %+v", *q.renewal)
	case q.mark != nil:
		return fmt.Sprintf("mark %+v", *q.mark)
	case q.settlement != nil:
		return fmt.Sprintf("settlement %+v", *q.settlement)
	}
	return "join"
}

// apply applies q at a time of the store's clock. It returns what the store has
// to answer.
func (r *rules) apply(q request, at time.Time) (driver.Row, bool) {
	switch {
	case q.claim != nil:
		return r.take(q.claim, at)
	case q.renewal != nil:
		return r.extend(q.renewal, at, r.ended(at))
	case q.mark != nil:
		ok := r.row.Mark(q.mark)
		return r.row, ok
	case q.settlement == nil:
		ok := r.row.Join()
		return r.row, ok
	}
	s := q.settlement
	ok := r.row.Settle(s)
	if ok && !s.Until.IsZero() {
		r.begin(false, false, at.Add(s.Until.Sub(s.Now)))
	}
	return r.row, ok
}

// ended reports whether the lease is over by the store's own clock.
func (r *rules) ended(at time.Time) bool { return r.clocked && at.After(r.end) }

// seenBy returns the row by the clock of a caller, which shows now.
func (r *rules) seenBy(token string, now, at time.Time) driver.Row {
	row := r.row
	if r.clocked && row.Token != "" && row.Token != token {
		row.Until = now.Add(r.end.Sub(at))
	}
	return row
}

// told returns the row as a store answers it to a request that changed nothing:
// the owner is told that its lease is over.
func (r *rules) told(row driver.Row, now, at time.Time) driver.Row {
	if row.Token != "" && r.ended(at) {
		row.Until = now.Add(r.end.Sub(at))
	}
	return row
}

func (r *rules) take(q *driver.Claim, at time.Time) (driver.Row, bool) {
	row := r.seenBy(q.Token, q.Now, at)
	if row.Judge(q) != driver.Granted {
		return r.told(row, q.Now, at), false
	}
	own := r.row.OwnedBy(q.Token)
	if r.clocked && own && row.Stamp.Equal(q.Stamp) && row.Until.Equal(q.Until) {
		return r.told(row, q.Now, at), true // a copy must not extend the lease
	}
	r.begin(own, row.Until.Equal(q.Until), at.Add(q.Until.Sub(q.Now)))
	r.row.Until = row.Until // of a dead owner, as the claimant sees it
	r.row.Take(q, q.Stamp)
	row = r.row
	r.row.Previous = driver.InterruptedEvent{}
	return row, true
}

func (r *rules) extend(q *driver.Renewal, at time.Time, ended bool) (driver.Row, bool) {
	until := r.row.Until
	if !r.row.Extend(q, ended) {
		return r.told(r.seenBy(q.Token, q.Now, at), q.Now, at), false
	}
	if !r.row.Until.Equal(until) { // a copy must not extend the lease
		r.begin(true, false, at.Add(q.Until.Sub(q.Now)))
	}
	return r.row, true
}

// begin begins a lease by the store's clock, of the owner or of a new one. An
// owner's later request may end its own lease earlier. If it asks for the same
// end by the owner's clock, it may change nothing.
func (r *rules) begin(own, same bool, end time.Time) {
	if own && (same || end.Before(r.end)) {
		r.other = end
		return
	}
	r.end = end
}

// comparison sends the same requests to a store and to the rules, and compares
// the answers and the rows. It does not compare when a lease ends more exactly
// than a quarter of a unit.
type comparison struct {
	*fixture
	rules
	inspector driver.Inspector
	verdicts  map[driver.Verdict]int

	fence int64  // the highest that the store gave
	owner string // to whom
}

// compare begins a comparison with a name that has no row.
func (f *fixture) compare() *comparison {
	if f.Majority {
		f.Skip("the store decides by a majority of rows")
	}
	inspector, ok := f.store.(driver.Inspector)
	if !ok {
		f.Skip("the store is not a driver.Inspector")
	}
	sub := *f
	sub.name, sub.now = newName(), f.now.Truncate(time.Second)
	return &comparison{fixture: &sub, rules: rules{clocked: f.Advance != nil}, inspector: inspector, verdicts: map[driver.Verdict]int{}}
}

// send sends q to the store and to the rules.
func (c *comparison) send(q request) {
	c.Helper()
	before, end, rules := c.row, c.end, c.rules
	if q.claim != nil {
		seen := c.seenBy(q.claim.Token, q.claim.Now, c.now)
		c.verdicts[seen.Judge(q.claim)]++
	}
	want, wantOK := c.apply(q, c.now)
	var got driver.Row
	var ok bool
	var err error
	switch {
	case q.claim != nil:
		got, ok, err = c.store.Acquire(c.Context(), q.claim)
	case q.renewal != nil:
		got, ok, err = c.store.Renew(c.Context(), q.renewal)
	case q.mark != nil:
		got, ok, err = c.store.(driver.Coalescer).Mark(c.Context(), q.mark)
		got.Until = want.Until // by the caller's own clock, which a mark does not tell
	case q.settlement != nil:
		got, ok, err = c.store.Settle(c.Context(), q.settlement)
		got.Until = want.Until // as with a mark
	default:
		got, ok, err = c.store.(driver.Line).Join(c.Context(), c.name)
		got.Until = want.Until // of the owner's clock, which a waiter does not see
	}
	if err != nil {
		c.Fatalf("%v: %v", q, err)
	}
	if q.renewal != nil && ok && !wantOK && rules.ended(c.now) { // the store wrote without looking at its clock
		c.rules = rules
		want, wantOK = c.extend(q.renewal, c.now, false)
	}
	told := ok && q.settlement == nil && q.mark == nil || !ok && !c.NoDetail // the row that is read describes the others
	if ok != wantOK || told && !c.same(&got, &want) {
		c.Fatalf("%v\nto        %+v\nthe store %v %+v\nthe rules %v %+v", q, before, ok, got, wantOK, want)
	}
	asked := time.Now()
	read, err := c.inspector.Read(c.Context(), c.name)
	if err != nil {
		c.Fatal(err)
	}
	if s := q.settlement; s != nil && !before.OwnedBy(s.Token) && before.DeleteAfter.After(s.DeleteAfter) && read.DeleteAfter.Equal(before.DeleteAfter) {
		c.row.DeleteAfter = before.DeleteAfter // only the owner can shorten a row's life
	}
	want = c.row
	if c.clocked {
		if left := read.Until.Sub(asked); !c.sameEnd(left) {
			c.Fatalf("after %v\nto        %+v, whose lease ends in %v\nthe lease ends in %v, want %v", q, before, end.Sub(c.now), left, c.end.Sub(c.now))
		}
		want.Until = read.Until
	}
	if !c.same(&read, &want) {
		c.Fatalf("after %v\nto        %+v\nthe store %+v\nthe rules %+v", q, before, read, c.row)
	}
}

// sameEnd reports whether a lease that lasts for left, as the store says, ends
// when it should by the store's clock.
func (c *comparison) sameEnd(left time.Duration) bool {
	near := func(end time.Time) bool { return (left - end.Sub(c.now)).Abs() < unit/4 }
	if !c.other.IsZero() && near(c.other) {
		c.end = c.other
	}
	c.other = time.Time{}
	return c.row.Token == "" || near(c.end)
}

// same reports whether the store's row is what the rules made.
func (c *comparison) same(got, want *driver.Row) bool {
	if !c.sameFence(got, want) || want.Token != "" && !c.sameUntil(got.Until, want.Until) {
		return false
	}
	near := func(a, b driver.InterruptedEvent) bool { return c.sameUntil(a.Until, b.Until) }
	return slices.EqualFunc(got.Memory.Interrupted, want.Memory.Interrupted, near) && reflect.DeepEqual(plain(*got), plain(*want))
}

func (c *comparison) sameUntil(got, want time.Time) bool {
	if !c.clocked {
		return got.Equal(want)
	}
	return got.Sub(want).Abs() < unit/4
}

// sameFence compares the fences of a row. A store with a clock of its own gives
// its own, which rise with every owner and never fall.
func (c *comparison) sameFence(got, want *driver.Row) bool {
	if c.NoFence || !c.clocked || want.Fence == 0 {
		return c.NoFence || got.Fence == want.Fence
	}
	owned := want.Token != "" && !want.Cooling()
	rises := got.Fence > c.fence || got.Fence == c.fence && (!owned || want.Token == c.owner)
	c.fence = got.Fence
	if owned {
		c.owner = want.Token
	}
	return rises
}

// plain returns a row without what is compared otherwise, or means nothing.
func plain(r driver.Row) driver.Row {
	r.Until, r.Fence = time.Time{}, 0
	r.Stamp, r.DeleteAfter = r.Stamp.UTC(), r.DeleteAfter.UTC()
	var completed []driver.CompletedEvent
	for _, e := range r.Memory.Completed {
		e.Until, e.At = e.Until.UTC(), e.At.UTC()
		completed = append(completed, e)
	}
	r.Memory.Completed = completed
	var interrupted []driver.InterruptedEvent
	for _, e := range r.Memory.Interrupted {
		e.Since, e.Until = e.Since.UTC(), time.Time{}
		interrupted = append(interrupted, e)
	}
	r.Memory.Interrupted = interrupted
	r.Previous.Since = r.Previous.Since.UTC()
	if len(r.Memory.Result.Body) == 0 {
		r.Memory.Result.Body = nil
	}
	return r
}
