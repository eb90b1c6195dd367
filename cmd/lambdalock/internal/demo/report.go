package demo

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/timeline"
	"github.com/lambdalock/lambdalock/internal/history"
	"github.com/lambdalock/lambdalock/internal/local/locallambda"
)

// Report is what happened.
type Report struct {
	Timeline timeline.Timeline
	// Said is what the function printed to its log.
	Said []string

	without, with tally
}

// tally counts what became of deliveries.
type tally struct {
	uploads    map[upload]int // how often each was handled to its end
	deliveries int            // without Lambda's retries
	kinds      map[timeline.Kind]int
	holds      []history.Hold
}

func newTally() tally { return tally{uploads: map[upload]int{}, kinds: map[timeline.Kind]int{}} }

// compare reports on the scenes that were played without a lock and with it.
func compare(without, with *run) *Report {
	rep := &Report{Said: with.said, without: newTally(), with: newTally()}
	rep.Timeline.Note = fmt.Sprintf("Lambda waits 1 and 2 minutes before it retries. The demo waits 1/%d of that; handlers and leases take their real time.", Scale)
	for i, s := range with.scenes {
		bare, own := newTally(), newTally()
		panel := timeline.Panel{Title: s.title, Hero: s.hero, Lanes: own.add(s), Waits: s.waits()}
		unlocked := bare.add(without.scenes[i])
		if s.compared {
			unlocked[0].Group, unlocked[0].Bad, panel.Lanes[0].Group = "without", true, "with"
			panel.Lanes = append(unlocked, panel.Lanes...)
		}
		panel.Caption, panel.Bad = s.result(bare, own)
		rep.Timeline.Panels = append(rep.Timeline.Panels, panel)
		rep.without.merge(bare)
		rep.with.merge(own)
	}
	rep.conclude()
	return rep
}

// result returns the caption of a scene, and reports whether it is bad news.
func (s *scene) result(without, with tally) (string, bool) {
	switch err := with.err(); {
	case err != nil:
		return "went wrong: " + err.Error(), true
	case with.kinds[s.shows] == 0:
		return "did not happen in this run", true
	case s.compared:
		return fmt.Sprintf("handled %s without lambdalock, %s with it", times(without.handled()), times(with.handled())), false
	}
	return s.caption, false
}

// handled returns how often a handler ran to its end.
func (t tally) handled() (n int) {
	for _, times := range t.uploads {
		n += times
	}
	return n
}

func (t *tally) merge(o tally) {
	t.deliveries += o.deliveries
	t.holds = append(t.holds, o.holds...)
	for u, n := range o.uploads {
		t.uploads[u] += n
	}
	for k, n := range o.kinds {
		t.kinds[k] += n
	}
}

// waits returns the times between the attempts of each delivery.
func (s *scene) waits() (all []timeline.Wait) {
	for _, d := range s.deliveries {
		for i, a := range d.attempts[min(1, len(d.attempts)):] {
			from := d.attempts[i].Ended
			all = append(all, timeline.Wait{
				From: from.Sub(s.zero), To: a.Started.Sub(s.zero), Words: fmt.Sprintf("%.0f min", (a.Started.Sub(from) * Scale).Minutes()),
			})
		}
	}
	return all
}

// add counts the attempts of a scene, and returns how to draw them: a lane for
// each delivery, and another for a retry if the handler had already run. It
// marks the handlers of a scene in which any overlapped. t is empty.
func (t *tally) add(s *scene) []timeline.Lane {
	var lanes []timeline.Lane
	for i, d := range s.deliveries {
		t.deliveries++
		t.uploads[d.upload] += 0
		lane := timeline.Lane{Name: cmp.Or(d.lane, fmt.Sprintf("delivery %d", i+1))}
		for _, a := range d.attempts {
			if n := len(lane.Spans); n > 0 && lane.Spans[n-1].Label != "" {
				lanes = append(lanes, lane)
				lane = timeline.Lane{Name: "retry"}
			}
			lane.Spans = append(lane.Spans, t.attempt(d.upload, a, s))
		}
		lanes = append(lanes, lane)
	}
	if len(history.Overlaps(t.holds)) > 0 {
		for _, lane := range lanes {
			for i := range lane.Spans {
				if s := &lane.Spans[i]; s.Kind == timeline.Ran {
					s.Kind = timeline.Overlap
				}
			}
		}
	}
	return lanes
}

// attempt counts an attempt, and returns how to draw it.
func (t *tally) attempt(u upload, a locallambda.Result, s *scene) timeline.Span {
	notes := notesIn(a, s.notes[a.Environment])
	begin, ran := notes["begin"]
	_, took := notes[tookOver]
	span := timeline.Span{Start: a.Started.Sub(s.zero), End: a.Ended.Sub(s.zero), Kind: kindOf(a.Outcome, ran, took)}
	if ran {
		hold := history.Hold{Name: u.object, Holder: fmt.Sprintf("environment %d", a.Environment), Fence: begin.Fence, Start: begin.Time, End: a.Ended}
		if n, ok := notes["end"]; ok {
			hold.End = n.Time
		}
		t.holds = append(t.holds, hold)
		span.Start, span.End, span.Label = hold.Start.Sub(s.zero), hold.End.Sub(s.zero), "handler runs"
		if took {
			span.Label = "↻ takes over"
		}
		if a.Outcome == locallambda.Succeeded {
			t.uploads[u]++
		}
	}
	for _, n := range notes {
		if span.Kind == timeline.Killed && !n.Until.IsZero() {
			span.Lease = max(span.Lease, n.Until.Sub(s.zero))
		}
	}
	t.kinds[span.Kind]++
	span.Result = resultOf(span.Kind, notes, t.uploads[u])
	return span
}

// notesIn returns what the environment noted during the attempt.
func notesIn(a locallambda.Result, notes []note) map[string]note {
	found := map[string]note{}
	for _, n := range notes {
		if !n.Time.Before(a.Started) && !n.Time.After(a.Ended) {
			found[n.What] = n
		}
	}
	return found
}

// resultOf says what came of an attempt, after which the upload was handled so
// many times.
func resultOf(k timeline.Kind, notes map[string]note, handled int) string {
	_, locked := notes[released]
	_, older := notes[stale]
	switch {
	case k == timeline.Refused:
		return "held: retried later"
	case k == timeline.Skipped && older:
		return "skipped: stale"
	case k == timeline.Skipped:
		return "skipped: completed"
	case k == timeline.Failed:
		return "✕ fails"
	case k == timeline.Killed:
		return "✕ kill -9; lease still held"
	case locked:
		return "completed"
	case handled > 1:
		return "handled again"
	}
	return "handled"
}

func kindOf(o locallambda.Outcome, ran, tookOver bool) timeline.Kind {
	switch {
	case !ran && o == locallambda.Succeeded:
		return timeline.Skipped
	case !ran:
		return timeline.Refused
	case o == locallambda.Crashed || o == locallambda.TimedOut:
		return timeline.Killed
	case o == locallambda.Failed:
		return timeline.Failed
	case tookOver:
		return timeline.TookOver
	}
	return timeline.Ran
}

// Err is nil if, with lambdalock, every upload was completed once, stale ones
// did not run, and no two handlers of one object overlapped.
func (rep *Report) Err() error { return rep.with.err() }

func (t tally) err() error {
	errs := []error{history.Check(t.holds)}
	for u, n := range t.uploads {
		switch {
		case u.stale && n != 0:
			errs = append(errs, fmt.Errorf("%s %s was stale, and yet handled", u.object, u.version))
		case !u.stale && n != 1:
			errs = append(errs, fmt.Errorf("%s %s was handled %s", u.object, u.version, times(n)))
		}
	}
	return errors.Join(errs...)
}

// conclude writes the headline and the figures.
func (rep *Report) conclude() {
	switch {
	case rep.Err() != nil:
		rep.Timeline.Title = "The demo went wrong"
	case slices.ContainsFunc(rep.Timeline.Panels, func(p timeline.Panel) bool { return p.Bad }):
		rep.Timeline.Title = "A scene did not happen: run the demo again"
	default:
		rep.Timeline.Title = "Delivered twice, handled once"
	}
	rep.Timeline.Figures = timeline.Figures{
		Title: fmt.Sprintf("The same %d deliveries of %d uploads", rep.with.deliveries, len(rep.with.uploads)),
		Names: []string{"handled twice", "overlaps", "older after newer"},
		Rows:  []timeline.Row{{Name: "without", Counts: rep.without.harm()}, {Name: "with lambdalock", Counts: rep.with.harm()}},
	}
}

// harm counts what went wrong. An upload that was lost is not among it: without
// a lock none ever is, because Lambda retries, and with it Err reports one.
func (t tally) harm() []int {
	var twice, old int
	for u, n := range t.uploads {
		switch {
		case u.stale:
			old += n
		case n > 1:
			twice++
		}
	}
	return []int{twice, len(history.Overlaps(t.holds)), old}
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}
