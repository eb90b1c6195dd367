package locallambda

import (
	"sync"
	"time"
)

// EventKind says what happened. The zero value is no event.
type EventKind string

// What happens to environments and invocations.
const (
	EventStarted  EventKind = "started"   // a process was started
	EventInvoked  EventKind = "invoked"   // an invocation was delivered
	EventFinished EventKind = "finished"  // its response is complete
	EventFailed   EventKind = "failed"    // it ended with a function error
	EventTimedOut EventKind = "timed out" // it passed its deadline; a classic environment has been killed
	EventCrashed  EventKind = "crashed"   // the process ended unasked; RequestID is the invocation it took along, if any
	EventFrozen   EventKind = "frozen"    // the process group was stopped for lack of work
	EventThawed   EventKind = "thawed"    // it goes on
	EventStopped  EventKind = "stopped"   // the process is gone: the last event of each
)

// Event is one step in the life of an environment. The zero value is no event.
type Event struct {
	Time        time.Time
	Kind        EventKind
	Environment int    // its number, from 1
	PID         int    // of the process concerned
	RequestID   string // of the invocation concerned; empty: none
	Detail      string // the error message, or how the process ended; empty: none
}

func eventFor(o Outcome) EventKind {
	switch o {
	case Succeeded:
		return EventFinished
	case TimedOut:
		return EventTimedOut
	case Crashed:
		return EventCrashed
	}
	return EventFailed
}

// note adds an event to the timeline. The caller holds p.mu, which puts the
// events in the order of what they tell.
func (p *Platform) note(sb *sandbox, kind EventKind, id, detail string) {
	p.timeline.add(Event{
		Time:        time.Now(),
		Kind:        kind,
		Environment: sb.env.number,
		PID:         sb.pid,
		RequestID:   id,
		Detail:      detail,
	})
}

// timeline hands events to an observer in a goroutine of its own, so that a
// slow observer delays nobody and one that calls the platform cannot deadlock.
type timeline struct {
	observe func(Event)
	idle    chan struct{} // closed when the goroutine has ended

	mu     sync.Mutex
	change sync.Cond
	events []Event
	closed bool
}

func newTimeline(observe func(Event)) *timeline {
	t := &timeline{observe: observe, idle: make(chan struct{})}
	t.change.L = &t.mu
	if observe == nil {
		close(t.idle)
	} else {
		go t.run()
	}
	return t
}

func (t *timeline) add(e Event) {
	if t.observe == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, e)
	t.change.Signal()
}

func (t *timeline) run() {
	defer close(t.idle)
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		for len(t.events) == 0 {
			if t.closed {
				return
			}
			t.change.Wait()
		}
		events := t.events
		t.events = nil
		t.mu.Unlock()
		for _, e := range events {
			t.observe(e)
		}
		t.mu.Lock()
	}
}

// close returns when all events have been observed.
func (t *timeline) close() {
	t.mu.Lock()
	t.closed = true
	t.change.Signal()
	t.mu.Unlock()
	<-t.idle
}
