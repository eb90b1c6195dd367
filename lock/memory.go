package lock

import (
	"slices"
	"time"
)

// Memory is what a name remembers of its completed events. The [Locker] alone
// decides what that is; stores keep it as it is given to them.
type Memory struct {
	Done   []Completed // in the order of completion
	Top    string      // highest completed Order
	Result Result      // of the last completed event that recorded one
}

// Completed is an event that must not run again before Until (milliseconds).
type Completed struct {
	Event string
	Until time.Time
}

// Result is what a completed event answered, for replay.
type Result struct {
	Event string // whose; empty when there is none
	Body  []byte
}

// The size of a memory is reckoned in bytes of a DynamoDB item, whose limits are
// the tightest of the stores.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
const (
	// usualRow is what one write may have at the lowest price: one write unit.
	usualRow = 1024
	// largestRow stays below the largest item, 400 KB, with room for what a row
	// has beside its memory.
	largestRow = 350 << 10
	// rowOverhead is a held row without name, order and events: the names of its
	// attributes, its times and numbers, and a holder as Lambda functions have it.
	rowOverhead = 316
	// eventOverhead is an event beside its text: a number, and the map's bookkeeping.
	eventOverhead = 12
	// defaultRememberAtLeast of Options.RememberAtLeast.
	defaultRememberAtLeast = 8
	// deliveryUnits is what all rows of a delivery's events with one name may add up to, in
	// write units. Each record is two requests, of the row's size each, and a partition of
	// DynamoDB takes 1,000 units a second: with eight minutes of them, a delivery gets done.
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
	deliveryUnits = 250_000
	// longestRemember bounds Options.Remember, and with it how long the row of a
	// holder that died is kept.
	longestRemember = 366 * 24 * time.Hour
)

func (m *Memory) remembers(event string, now time.Time) bool {
	return slices.ContainsFunc(m.Done, func(c Completed) bool {
		return c.Event == event && !c.expired(now)
	})
}

func (c *Completed) expired(now time.Time) bool { return c.Until.UnixMilli() < now.UnixMilli() }

// completion is what one completed event adds to a memory.
type completion struct {
	event, order string
	until        time.Time // the event is remembered
	result       []byte    // nil: none
	now          time.Time
}

// with is the memory after a completion, as far as room allows. It tells how many
// unexpired events that room costs, and whether it costs the result.
func (m *Memory) with(c completion, room room) (next Memory, forgotten int, resultDropped bool) {
	next.Top = max(m.Top, c.order)
	for _, old := range m.Done {
		if old.Event != c.event && !old.expired(c.now) {
			next.Done = append(next.Done, old)
		}
	}
	if c.event != "" {
		next.Done = append(next.Done, Completed{Event: c.event, Until: c.until.Truncate(time.Millisecond)})
	}
	forgotten = next.trim(room)
	switch {
	case c.result != nil && c.event != "":
		next.Result = Result{Event: c.event, Body: c.result}
	case m.Result.Event != c.event && next.remembers(m.Result.Event, c.now):
		next.Result = m.Result
	}
	if room.size(&next)+len(next.Result.Body) > largestRow {
		next.Result, resultDropped = Result{}, c.result != nil
	}
	return next, forgotten, resultDropped
}

// room is how much a name may remember.
type room struct {
	name  string
	least int // that many events stay, whatever the row costs
	// delivery holds the events that came together with the completed one: those
	// of them that are completed stay too.
	delivery map[string]bool
}

// size is that of the row, held by the next owner: whose event will be there too.
func (r room) size(m *Memory) int {
	size, longest := rowOverhead+len(r.name)+len(m.Top), 0
	for i := range m.Done {
		size += len(m.Done[i].Event) + eventOverhead
		longest = max(longest, len(m.Done[i].Event))
	}
	return size + longest
}

// trim forgets the events that were completed first, where the row would cost more
// than one write unit, and tells how many.
func (m *Memory) trim(r room) int {
	before, size := len(m.Done), r.size(m)
	forDelivery := deliveryUnits * usualRow / max(len(r.delivery), 1)
	kept := m.Done[:0]
	for i, c := range m.Done {
		stays := before-i <= r.least || r.delivery[c.Event] && size <= forDelivery
		if size > largestRow || size > usualRow && !stays {
			size -= len(c.Event) + eventOverhead
			continue
		}
		kept = append(kept, c)
	}
	m.Done = kept
	return before - len(kept)
}

// keepUntil is until when a row with this memory must be kept after its last use:
// long enough for a fence that starts anew to start above the old one, and never
// less than what is remembered.
func (m *Memory) keepUntil(now time.Time) time.Time {
	keep := now.Add(keepRow)
	for _, c := range m.Done {
		if c.Until.After(keep) {
			keep = c.Until
		}
	}
	return keep
}
