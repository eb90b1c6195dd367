package driver

import (
	"slices"
	"time"
)

// Memory is what a name remembers of its completed and its interrupted events.
// Package lock decides what that is, at most about 350 KB; stores keep it
// unchanged, except that [Row.Take] adds the event of a dead owner.
type Memory struct {
	Completed    []CompletedEvent // in the order of completion
	HighestOrder string           // of all completed events; empty if none had one
	Result       Result           // of the last completed event that has one
	// Interrupted has the events of owners that died, and asked by InterruptedFor
	// to have them kept; each once, and the last one last.
	Interrupted []InterruptedEvent
}

// Has reports whether event is completed and not yet forgotten at now.
func (m *Memory) Has(event string, now time.Time) bool {
	return slices.ContainsFunc(m.Completed, func(c CompletedEvent) bool {
		return c.Event == event && !c.Expired(now)
	})
}

// keepRow is longer than any clock skew, so that a fence that restarts from the
// clock starts above the old one.
const keepRow = 24 * time.Hour

// KeepUntil returns until when a row with this memory must be kept after its
// last use at now: for a day, so that a fence that restarts starts above the
// old one, and for as long as any event is remembered. The highest order has no
// time of its own, so each use keeps it for as long as its user remembers.
func (m *Memory) KeepUntil(now time.Time, remember time.Duration) time.Time {
	until := now.Add(keepRow)
	keep := func(t time.Time) {
		if t.After(until) {
			until = t
		}
	}
	if m.HighestOrder != "" {
		keep(now.Add(remember))
	}
	for _, c := range m.Completed {
		keep(c.Until)
	}
	for _, e := range m.Interrupted {
		keep(e.Until)
	}
	return until
}

// CompletedEvent is an event that must not run again until Until has passed.
type CompletedEvent struct {
	Event   string
	Payload string    // of the event's claim; empty if it had none
	Until   time.Time // whole milliseconds
	// At is when it was completed, in whole seconds of its owner's clock, before
	// Until. It is zero if that is not known. It tells people, and decides nothing.
	At time.Time
}

// Expired reports whether the event may run again at now.
func (c *CompletedEvent) Expired(now time.Time) bool { return c.Until.UnixMilli() < now.UnixMilli() }

// Result is what the handler of a completed event returned, kept for replay.
type Result struct {
	Event string // whose result it is; empty if there is none
	Body  []byte
}

// InterruptedEvent is an event of which a run began, and nothing is known of
// its end.
type InterruptedEvent struct {
	Event   string
	Payload string // of the event's claim; empty if it had none
	Holder  string // describes the owner of that run to people
	// Since is the stamp of the row when that owner had it: when the run began.
	Since time.Time
	Until time.Time // when it is forgotten; whole milliseconds
}

// mostInterrupted is how many interrupted events a name remembers at most, so
// that the row of a name whose owners all die stays far below 400 KB, the
// largest item of DynamoDB.
const mostInterrupted = 64

// FindInterrupted returns what is remembered at now of an event that was
// interrupted, or nil.
func (m *Memory) FindInterrupted(event string, now time.Time) *InterruptedEvent {
	for i := range m.Interrupted {
		if e := &m.Interrupted[i]; e.Event == event && !e.Until.Before(now) {
			return e
		}
	}
	return nil
}

// Interrupt adds an interrupted event, which replaces an earlier one of the
// same name, and forgets those whose time is over at now. It changes no slice
// that another Memory may share.
func (m *Memory) Interrupt(event InterruptedEvent, now time.Time) {
	kept := make([]InterruptedEvent, 0, len(m.Interrupted)+1)
	for _, e := range append(slices.Clip(m.Interrupted), event) {
		if !e.Until.Before(now) && (e.Event != event.Event || e == event) {
			kept = append(kept, e)
		}
	}
	m.Interrupted = kept[max(0, len(kept)-mostInterrupted):]
}
