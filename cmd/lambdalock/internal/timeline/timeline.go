// Package timeline draws which deliveries of events ran a handler, and when:
// one panel per scene, one lane per execution environment, time from left to
// right. The same data becomes text for a terminal or an HTML page.
package timeline

import "time"

// Timeline is everything a drawing shows.
type Timeline struct {
	Title    string
	Panels   []Panel
	Verdicts []Verdict
	// Note explains how the drawing differs from real life.
	Note string
}

// Panel is one scene. Its times count from the beginning of the scene.
type Panel struct {
	Title string
	// Caption states the result of the scene; Bad marks it as bad news.
	Caption string
	Bad     bool
	Spans   []Span // in any order
	Waits   []Wait
}

// Span is one delivery of an event.
type Span struct {
	// Env is the number of the execution environment; 0 for what is given up,
	// which has a lane of its own.
	Env int
	// Start and End are those of the handler, or of the delivery where the
	// handler did not run.
	Start, End time.Duration
	// LockStart and LockEnd say how long the delivery held the lock; equal: it
	// never did.
	LockStart, LockEnd time.Duration
	Kind               Kind
	// Object is the short name of what the handler worked on, such as cat.png.
	// Handlers of one object that overlap are drawn as an overlap. Empty: it is
	// unknown.
	Object string
	// Remark follows the object in the caption of the span.
	Remark string
	// Fence stands for the fencing token; 0: none.
	Fence int64
}

// Wait is a stretch of time in which an event waited for its next delivery. If
// a scene stands still meanwhile, it is drawn short, with these words.
type Wait struct {
	From, To time.Duration
	Words    string
}

// Verdict states in a few words what it all comes to, and in figures.
type Verdict struct {
	Result, Figures string
	Bad             bool // marks the result as bad news
}

// Kind says how a delivery ended.
type Kind int

// The kinds of spans.
const (
	Ran       Kind = iota // the handler ran to its end
	TookOver              // it did, after the lock was taken over from a dead holder
	Failed                // the handler returned an error
	Killed                // the process died while the handler was running
	Refused               // another delivery held the lock; the event will be delivered again
	Skipped               // the handler did not have to run
	Ignored               // it was acknowledged, although no handler ran
	Declined              // the function answered that it does not take the event
	Succeeded             // it is unknown whether the handler ran
	GivenUp               // no delivery: the event will not be delivered again
	overlap
	locked
	fenced
)

// ran reports whether the handler was called, as far as is known.
func (k Kind) ran() bool { return k < Refused || k == Succeeded }

// look is how something is drawn: a class of the page and a symbol in captions,
// and for a terminal what a bar is made of. A bar of one cell shows its last
// rune.
type look struct {
	Class, Symbol string
	bar           string
	style         style
	Words         string
}

// looks are the marks of a drawing, in the order of the legend.
var looks = []look{
	Ran:       {"ran", "✓", "██", "32", "ran to its end"},
	TookOver:  {"took", "↻", "█»", "36", "ran after a dead holder"},
	Failed:    {"fail", "!", "█!", "31", "failed"},
	Killed:    {"fail", "✕", "█×", "31", "killed"},
	Refused:   {"held", "", "▒▒", "33", "held: another delivery has the lock"},
	Skipped:   {"skip", "", "··", "2", "skipped"},
	Ignored:   {"skip", "", "··", "33", "acknowledged without being handled"},
	Declined:  {"held", "", "▒▒", "31", "refused by the function"},
	Succeeded: {"ran", "", "██", "2", "succeeded: whether the handler ran is unknown"},
	GivenUp:   {"dead", "", "xx", "1;31", "given up: not delivered again"},
	overlap:   {"overlap", "", "╳╳", "1;31", "two handlers of one object at once"},
	locked:    {"lock", "", "[]", "2", "the lock is held"},
	fenced:    {"fence", "#2", "#2", "", "fence: a number that rises with every holder of the lock"},
}

// legend returns the looks of what t shows.
func (t Timeline) legend() []look {
	shown := map[Kind]bool{}
	for _, p := range t.Panels {
		for _, lane := range newLayout(p).Lanes {
			for _, b := range lane.Bars {
				shown[b.Kind] = true
				shown[overlap] = shown[overlap] || len(b.Overlaps) > 0
				shown[locked] = shown[locked] || b.LockStart < b.LockEnd
				shown[fenced] = shown[fenced] || b.Fence != 0
			}
		}
	}
	var all []look
	for k, l := range looks {
		if shown[Kind(k)] {
			all = append(all, l)
		}
	}
	return all
}
