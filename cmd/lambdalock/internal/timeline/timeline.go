// Package timeline draws which deliveries of events ran a handler, and when: a
// panel per scene, with lanes on one time axis. The same data becomes text for
// a terminal or an HTML page.
package timeline

import "time"

// Timeline is everything a drawing shows.
type Timeline struct {
	// Title is the headline: what the drawing shows, as a sentence.
	Title   string
	Panels  []Panel
	Figures Figures
	// Note explains how the drawing differs from real life.
	Note string
}

// Panel is one scene. Its times count from the beginning of the scene.
type Panel struct {
	Title string
	// Caption states the result of the scene; Bad marks it as bad news.
	Caption string
	Bad     bool
	// Hero makes the panel as wide as the page, above those that are not.
	Hero  bool
	Lanes []Lane
	Waits []Wait
}

// Lane is a row of a panel.
type Lane struct {
	// Group is a heading for this lane and those below; Bad marks it as bad
	// news.
	Group string
	Bad   bool
	Name  string
	Spans []Span // one after the other
}

// Span is one delivery of an event.
type Span struct {
	// Start and End are those of the handler, or of the delivery where the
	// handler did not run.
	Start, End time.Duration
	// Lease is when the lease of a dead holder ends; 0: there is none.
	Lease time.Duration
	Kind  Kind
	// Label is what the bar is about, Result what came of it.
	Label, Result string
}

// Wait is a stretch of time in which an event waited for its next delivery. If
// a scene stands still meanwhile, it is drawn short, with these words.
type Wait struct {
	From, To time.Duration
	Words    string
}

// Figures compares counts of harm.
type Figures struct {
	Title string
	Names []string // what was counted
	Rows  []Row
}

// Row has a count for each name.
type Row struct {
	Name   string
	Counts []int
}

// Kind says how a delivery ended.
type Kind int

// The kinds of spans.
const (
	Ran       Kind = iota // the handler ran to its end
	Overlap               // it ran at the same time as another of its object
	TookOver              // it did, after the lock was taken over from a dead holder
	Failed                // the handler returned an error
	Killed                // the process died while the handler was running
	Refused               // another delivery held the lock; the event will be delivered again
	Skipped               // the handler did not have to run
	Ignored               // it was acknowledged, although no handler ran
	Declined              // the function answered that it does not take the event
	Succeeded             // it is unknown whether the handler ran
	GivenUp               // no delivery: the event will not be delivered again
)

// looks are how kinds are drawn: the class on the page, and for a terminal what
// a bar is made of. A bar of one cell shows its last rune.
var looks = [...]struct {
	class, bar string
	style      style
}{
	Ran:       {"ran", "██", "32"},
	Overlap:   {"overlap", "╳╳", "1;31"},
	TookOver:  {"took", "█»", "36"},
	Failed:    {"fail", "█!", "31"},
	Killed:    {"fail", "█×", "31"},
	Refused:   {"tick held", "▒▒", "33"},
	Skipped:   {"tick skip", "··", "2"},
	Ignored:   {"tick skip", "··", "33"},
	Declined:  {"tick held", "▒▒", "31"},
	Succeeded: {"ran", "██", "2"},
	GivenUp:   {"tick dead", "xx", "1;31"},
}
