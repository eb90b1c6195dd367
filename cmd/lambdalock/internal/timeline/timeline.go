// Package timeline draws what happened in a demo of distributed locks: one
// lane per execution environment, time from left to right, one panel per
// scenario. The same data becomes plain text for a terminal or an SVG picture.
package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind says how one invocation of a handler ended.
type Kind int

// The kinds of spans.
const (
	// Ran means the handler ran to its end.
	Ran Kind = iota
	// Skipped means the handler was not run: the work was already done, or
	// the event was older than work already done.
	Skipped
	// Refused means another holder had the lock; the handler was not run and
	// the event will be delivered again.
	Refused
	// Failed means the handler returned an error.
	Failed
	// Killed means the process died while the handler was running.
	Killed
	// TookOver means the handler ran after the lock was taken over from a
	// dead holder.
	TookOver
)

var kindWords = [...]string{
	Ran:      "ran",
	Skipped:  "skipped",
	Refused:  "refused",
	Failed:   "failed",
	Killed:   "killed",
	TookOver: "took over",
}

// String returns the word for k that both outputs use.
func (k Kind) String() string {
	if !k.valid() {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return kindWords[k]
}

func (k Kind) valid() bool { return k >= 0 && int(k) < len(kindWords) }

// Span is one invocation in one execution environment.
type Span struct {
	// Lane is the environment's place in Timeline.Lanes, counted from 1.
	Lane int
	// Start and End are measured from the timeline's zero.
	Start, End time.Duration
	// Kind says how the invocation ended.
	Kind Kind
	// Object is the short name of the lock, for example "cat.png".
	Object string
	// Label is a short remark, for example "v1" or "duplicate".
	Label string
	// Fence is a small number standing for the fencing token; 0 means none.
	Fence int64
}

// caption is the text a bar carries.
func (s Span) caption() string {
	parts := []string{clean(s.Object), clean(s.Label)}
	if s.Fence != 0 {
		parts = append(parts, fmt.Sprintf("#%d", s.Fence))
	}
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}

// Phase is the beginning of a scenario, which lasts until the next one begins.
type Phase struct {
	// Start is measured from the timeline's zero.
	Start time.Duration
	// Title says in a few words what the scenario shows.
	Title string
}

// Timeline is everything a drawing shows.
type Timeline struct {
	// Title is the heading of the drawing.
	Title string
	// Lanes are the names of the execution environments.
	Lanes []string
	// Spans may be in any order.
	Spans []Span
	// Phases may be in any order; without any, all spans share one panel.
	Phases []Phase
	// Length is the duration of the recording. It is written in the heading,
	// and it ends the last phase if nothing happened in that.
	Length time.Duration
}

// scene is a phase with the spans that began in it.
type scene struct {
	number     int // from 1; 0 when the timeline has no phases
	title      string
	start, end time.Duration
	spans      []Span // by start
}

// scenes checks t and splits it by phase. A span belongs to the phase it
// began in, and its scene lasts until the last of them ends: no bar is ever
// cut off, and no room is spent on the wait for the next phase.
func (t Timeline) scenes() ([]scene, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	phases := slices.Clone(t.Phases)
	slices.SortStableFunc(phases, func(a, b Phase) int { return cmp.Compare(a.Start, b.Start) })

	scenes := []scene{{end: t.Length}}
	if len(phases) > 0 {
		scenes = scenes[:0]
	}
	for i, p := range phases {
		end := t.Length
		if i+1 < len(phases) {
			end = phases[i+1].Start
		}
		scenes = append(scenes, scene{number: i + 1, title: clean(p.Title), start: p.Start, end: end})
	}

	spans := slices.Clone(t.Spans)
	slices.SortStableFunc(spans, func(a, b Span) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.End, b.End))
	})
	at := 0
	for _, s := range spans {
		for at+1 < len(scenes) && scenes[at+1].start <= s.Start {
			at++
		}
		scenes[at].spans = append(scenes[at].spans, s)
	}
	for i := range scenes {
		scenes[i].fit()
	}
	return scenes, nil
}

// fit makes sc as long as its spans need, and never empty.
func (sc *scene) fit() {
	for i, s := range sc.spans {
		if i == 0 {
			sc.start = min(sc.start, s.Start)
			sc.end = s.End
		}
		sc.end = max(sc.end, s.End)
	}
	sc.end = max(sc.end, sc.start+time.Millisecond)
}

// summary says how long the recording is and on how many lanes.
func (t Timeline) summary() string {
	noun := "environments"
	if len(t.Lanes) == 1 {
		noun = "environment"
	}
	return fmt.Sprintf("%d %s, %s", len(t.Lanes), noun, seconds(t.Length, 1))
}

// lane returns the spans of one lane, counted from 1.
func (sc scene) lane(n int) []Span {
	var out []Span
	for _, s := range sc.spans {
		if s.Lane == n {
			out = append(out, s)
		}
	}
	return out
}

// usedLanes returns, in order, the lanes on which any of the scenes has a span.
func usedLanes(scenes ...scene) []int {
	var out []int
	for _, sc := range scenes {
		for _, s := range sc.spans {
			out = append(out, s.Lane)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// usedKinds returns, in order, the kinds of spans that occur in the scenes.
func usedKinds(scenes []scene) []Kind {
	var out []Kind
	for _, sc := range scenes {
		for _, s := range sc.spans {
			out = append(out, s.Kind)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// check reports the first span that cannot be drawn.
func (t Timeline) check() error {
	for i, s := range t.Spans {
		switch {
		case s.Lane < 1 || s.Lane > len(t.Lanes):
			return fmt.Errorf("timeline: span %d is on lane %d of %d", i, s.Lane, len(t.Lanes))
		case s.End < s.Start:
			return fmt.Errorf("timeline: span %d ends at %v, before its start at %v", i, s.End, s.Start)
		case !s.Kind.valid():
			return fmt.Errorf("timeline: span %d has the unknown kind %d", i, int(s.Kind))
		}
	}
	return nil
}
