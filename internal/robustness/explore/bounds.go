package explore

import (
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// The largest bounds.
const (
	maxClients = 3
	maxNames   = 2
	maxEvents  = 2
	maxLate    = 8
)

// Kind is what an invocation asks for beside the name. Empty fields are those
// of a plain mutex and of an unordered event.
type Kind struct{ Event, Order string }

// Bounds are how much may happen in one history. Times are in ticks.
type Bounds struct {
	Clients int // at most 3
	Names   int // at most 2
	Turns   int // invocations of each client
	Kinds   []Kind
	Ticks   int // how long a history lasts
	Rounds  int // how often a claim that was refused asks again
	Lease   int
	Grace   int
	// Remember is how long an event stays completed.
	Remember int
	// Skew is how far the clock of each client is ahead.
	Skew [maxClients]int
	// ServerClock lets the store judge leases by its own clock.
	ServerClock bool
	// Heartbeat lets holders renew their leases.
	Heartbeat bool

	// How many requests get no answer, an answer that anything may precede, are
	// rejected, and arrive once more after they were answered; and how many clients
	// crash, and freeze for a while.
	Unanswered, Slow, Rejected, Copies, Crashes, Freezes int
}

// Complete returns the memory of a row after one more completion.
type Complete func(m driver.Memory, k Kind, now, until time.Time) driver.Memory

// Remember is the memory of a name that never forgets for lack of room.
func Remember(m driver.Memory, k Kind, now, until time.Time) driver.Memory {
	next := driver.Memory{HighestOrder: max(m.HighestOrder, k.Order)}
	for _, c := range m.Completed {
		if c.Event != k.Event && !c.Expired(now) {
			next.Completed = append(next.Completed, c)
		}
	}
	if k.Event != "" {
		next.Completed = append(next.Completed, driver.CompletedEvent{Event: k.Event, Until: until})
	}
	return next
}

// The zero of all clocks, and the length of a tick. Stamps of the same tick
// differ by microseconds.
var zero = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const (
	tick          = time.Second
	stampsPerTick = 100
)

func at(ticks int8) time.Time { return zero.Add(time.Duration(ticks) * tick) }

func stampAt(stamp int16) time.Time {
	return at(int8(stamp / stampsPerTick)).Add(time.Duration(stamp%stampsPerTick) * time.Microsecond)
}

// ticksOf returns -1 for the zero time.
func ticksOf(t time.Time) int8 {
	if t.IsZero() {
		return -1
	}
	return int8(t.Sub(zero) / tick)
}

func stampOf(t time.Time) int16 {
	if t.IsZero() {
		return -1
	}
	d := t.Sub(zero)
	return int16(d/tick)*stampsPerTick + int16(d%tick/time.Microsecond)
}
