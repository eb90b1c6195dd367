package lock

import (
	"context"
	"slices"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/event/stored"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// The size of a memory is counted in bytes of a DynamoDB item, whose limits are
// the tightest of the stores.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
const (
	// usualRow is the largest row that one write unit pays for.
	usualRow = 1024
	// largestRow stays below the largest item, 400 KB, and leaves room for what a
	// row has beside its memory.
	largestRow = 350 << 10
	// rowOverhead is the size of a held row without name, order and events: its
	// attribute names, times and numbers, and the usual holder of a Lambda
	// function.
	rowOverhead = 337
	// eventOverhead is the size of an event without its text: a number and its
	// share of the map.
	eventOverhead = 12
	// payloadOverhead is the size of an entry in the map of payloads without its
	// texts. A row with such entries has two more attributes.
	payloadOverhead  = 1
	payloadsOverhead = 18
	// atOverhead is the size of the time at which an event was completed: digits of
	// its number.
	atOverhead = 4
	// resultOverhead is the size of a result without its texts.
	resultOverhead = 21
	// shorterRow is how much smaller than its counted size a held row may be,
	// because of a shorter holder and a shorter event.
	shorterRow = 250
	// interruptedOverhead is the size of an interrupted event without its texts:
	// the names and values of a map of four texts and a number.
	interruptedOverhead = 75
	// keptOverhead is what a held row has beside that if its owner asks to keep
	// its event: an attribute, and that of the map.
	keptOverhead = 20
	// batchUnits is how many write units the completions of a batch whose events
	// share one name may cost. Its claims cost as much again. A partition of
	// DynamoDB takes 1,000 units per second, so the batch needs little more than
	// eight minutes and still completes.
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
	batchUnits = 250_000
)

// completion is what one completed event adds to a memory.
type completion struct {
	event, order, payload string
	until                 time.Time // the event is remembered until then
	result                []byte    // nil: none
	now                   time.Time
}

// complete returns the memory after a completion, cut to what room allows. It
// also returns how many unexpired events are forgotten for lack of room, and
// whether the result is dropped for the same reason.
func complete(m *driver.Memory, c completion, room room) (next *driver.Memory, forgotten int, resultDropped bool) {
	next = &driver.Memory{HighestOrder: max(m.HighestOrder, c.order)}
	for _, old := range m.Completed {
		if old.Event != c.event && !old.Expired(c.now) {
			next.Completed = append(next.Completed, old)
		}
	}
	for _, e := range m.Interrupted {
		if e.Event != c.event && !e.Until.Before(c.now) {
			next.Interrupted = append(next.Interrupted, e)
		}
	}
	if c.event != "" {
		next.Completed = append(next.Completed, driver.CompletedEvent{
			Event: c.event, Payload: c.payload, Until: c.until.Truncate(time.Millisecond), At: c.now.Truncate(time.Second),
		})
	}
	forgotten = room.trim(next)
	switch {
	case c.result != nil && c.event != "":
		next.Result = driver.Result{Event: c.event, Body: c.result}
	case m.Result.Event != c.event && next.Has(m.Result.Event, c.now):
		next.Result = m.Result
	}
	if room.size(next)+len(next.Result.Body) > largestRow {
		next.Result, resultDropped = driver.Result{}, c.result != nil
	}
	room.trimTimes(next)
	return next, forgotten, resultDropped
}

// room says how much a name may remember.
type room struct {
	name  string
	least int  // how many events stay, whatever the row costs
	keeps bool // with OnInterrupted
	// batch holds the events of the same delivery. Those that are completed stay
	// too, as far as batchUnits allows.
	batch map[string]bool
}

func (l *Locker) roomFor(ctx context.Context, key Key, row string) room {
	return room{
		name: row, least: l.opts.RememberEvents, keeps: l.opts.OnInterrupted != nil,
		batch: invocation.BatchOf(ctx).Stored(key.Name, stored.Event),
	}
}

// size returns the size of the row while the next owner holds it, including the
// event of that owner.
func (r room) size(m *driver.Memory) int {
	size, longest, payloads := rowOverhead+len(r.name)+len(m.HighestOrder), 0, 0
	for i := range m.Completed {
		c := &m.Completed[i]
		size += eventSize(c)
		longest = max(longest, len(c.Event)+len(c.Payload))
		if c.Payload != "" {
			payloads = payloadsOverhead
		}
	}
	if r.keeps {
		size += keptOverhead
	}
	for i := range m.Interrupted {
		e := &m.Interrupted[i]
		size += len(e.Event) + len(e.Payload) + len(e.Holder) + interruptedOverhead
	}
	return size + longest + payloads
}

// eventSize returns what an event adds to a row. One with a payload is in two
// maps.
func eventSize(c *driver.CompletedEvent) int {
	size := len(c.Event) + eventOverhead
	if c.Payload != "" {
		size += len(c.Event) + payloadOverhead + len(c.Payload)
	}
	return size
}

// trim forgets the events that were completed first if the row would cost more
// than one write unit, and returns how many.
func (r room) trim(m *driver.Memory) int {
	before, size := len(m.Completed), r.size(m)
	forBatch := batchUnits * usualRow / max(len(r.batch), 1)
	kept := m.Completed[:0]
	for i, c := range m.Completed {
		stays := before-i <= r.least || r.batch[c.Event] && size <= forBatch
		if size > largestRow || size > usualRow && !stays {
			size -= eventSize(&c)
			continue
		}
		kept = append(kept, c)
	}
	m.Completed = kept
	return before - len(kept)
}

// trimTimes forgets when the events were completed that were completed first,
// if that would make the row cost another write unit.
func (r room) trimTimes(m *driver.Memory) {
	size := r.size(m)
	if m.Result.Event != "" {
		size += resultOverhead + len(m.Result.Event) + len(m.Result.Body)
	}
	used, fit := (size-1)%usualRow+1, 0 // of the last unit
	if size <= usualRow || used > shorterRow {
		fit = (usualRow - used) / atOverhead
	}
	for i := range len(m.Completed) - fit {
		m.Completed[i].At = time.Time{}
	}
}

// progress is how far the work has come when its lock is released.
type progress int

const (
	unbegun progress = iota
	unsaid           // whether it has begun
	failed
	unknown // it may have succeeded
)

// memoryAfter returns the memory after work that does not complete the event,
// or nil if it does not change.
func (h *hold) memoryAfter(work progress) *driver.Memory {
	now := clock.Wall(h.clock)
	m := h.row.Memory
	switch {
	case work == unknown && h.claim.InterruptedFor > 0:
		m.Interrupt(driver.InterruptedEvent{
			Event: h.claim.Event, Payload: h.claim.Payload, Holder: h.claim.Holder, Since: h.claim.Stamp,
			Until: now.Add(h.claim.InterruptedFor).Truncate(time.Millisecond),
		}, now)
	case work == failed && h.question == answered && m.FindInterrupted(h.claim.Event, now) != nil:
		m.Interrupted = slices.DeleteFunc(slices.Clone(m.Interrupted), func(e driver.InterruptedEvent) bool { return e.Event == h.claim.Event })
	case work <= unsaid && h.claim.InterruptedFor > 0 && h.isOnlyTold():
		e := h.row.Previous
		e.Until = now.Add(h.claim.InterruptedFor).Truncate(time.Millisecond)
		m.Interrupt(e, now)
	default:
		return nil
	}
	return &m
}

// keepHeld returns until when the row of a lease is kept if its owner dies. It
// is the longest time for which anything may be remembered: only the owner that
// releases the row knows what it remembers, and other Lockers may remember
// longer than this one.
func keepHeld(until time.Time) time.Time { return until.Add(longestRemember) }
