package driver

import (
	"slices"
	"time"
)

// Memory is what a name remembers of its completed events. Package lock decides
// what that is; stores keep it unchanged.
type Memory struct {
	Completed    []CompletedEvent // in the order of completion
	HighestOrder string           // of all completed events; empty if none had one
	Result       Result           // of the last completed event that has one
}

// Has reports whether event is completed and not yet forgotten at now.
func (m *Memory) Has(event string, now time.Time) bool {
	return slices.ContainsFunc(m.Completed, func(c CompletedEvent) bool {
		return c.Event == event && !c.Expired(now)
	})
}

// CompletedEvent is an event that must not run again until Until has passed.
type CompletedEvent struct {
	Event   string
	Payload string    // of the event's claim; empty if it had none
	Until   time.Time // whole milliseconds
}

// Expired reports whether the event may run again at now.
func (c *CompletedEvent) Expired(now time.Time) bool { return c.Until.UnixMilli() < now.UnixMilli() }

// Result is what the handler of a completed event returned, kept for replay.
type Result struct {
	Event string // whose result it is; empty if there is none
	Body  []byte
}
