package demo

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/timeline"
	"github.com/lambdalock/lambdalock/internal/history"
	"github.com/lambdalock/lambdalock/internal/local/locallambda"
)

// Report is what happened.
type Report struct {
	Timeline timeline.Timeline
	// Said is what the function printed to its log.
	Said []string

	protected, unprotected tally
}

// tally counts what became of deliveries.
type tally struct {
	uploads    map[upload]int // how often each was handled to its end
	deliveries int
	kinds      map[timeline.Kind]int
	holds      []history.Hold
}

func newTally() tally { return tally{uploads: map[upload]int{}, kinds: map[timeline.Kind]int{}} }

func (r *run) report(environments int) *Report {
	rep := &Report{Said: r.said, protected: newTally(), unprotected: newTally()}
	rep.Timeline = timeline.Timeline{
		Title: "One lock per object",
		Note:  fmt.Sprintf("Lambda retries after 1 and 2 minutes, here %d times sooner: 1 minute is drawn as 2 s.", Scale),
	}
	for _, s := range r.scenes {
		own := newTally()
		panel := timeline.Panel{Title: s.title, Waits: s.waits}
		for _, a := range s.attempts {
			panel.Spans = append(panel.Spans, own.add(a, s.zero, s.notes[a.Environment]))
		}
		panel.Caption, panel.Bad = s.result(own)
		rep.Timeline.Panels = append(rep.Timeline.Panels, panel)
		if s.unprotected {
			rep.unprotected.merge(own)
		} else {
			rep.protected.merge(own)
		}
	}
	shortenFences(rep.Timeline.Panels)
	rep.conclude(environments)
	return rep
}

// result returns the caption of a scene, and reports whether it is bad news.
func (s *scene) result(t tally) (string, bool) {
	overlaps, err := history.Overlaps(t.holds), t.err()
	switch {
	case !s.unprotected && err != nil:
		return "went wrong: " + err.Error(), true
	case !s.unprotected && t.kinds[s.shows] == 0:
		return "did not happen in this run", true
	case !s.unprotected:
		return s.caption, false
	case t.handled() != 2:
		return "was handled " + plural(t.handled(), "time"), false
	case len(overlaps) == 0:
		return "runs twice, but did not overlap in this run", true
	}
	return "runs twice, at the same time", true
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

// notesIn returns what the environment noted during the attempt.
func (a *attempt) notesIn(notes []note) map[string]note {
	found := map[string]note{}
	for _, n := range notes {
		if !n.Time.Before(a.Started) && !n.Time.After(a.Ended) {
			found[n.What] = n
		}
	}
	return found
}

// add counts an attempt, and returns how to draw it.
func (t *tally) add(a attempt, zero time.Time, all []note) timeline.Span {
	notes := a.notesIn(all)
	begin, ran := notes["begin"]
	_, took := notes[tookOver]
	span := timeline.Span{
		Env: a.Environment, Start: a.Started.Sub(zero), End: a.Ended.Sub(zero), Kind: kindOf(a.Outcome, ran, took),
		Object: path.Base(a.upload.object), Fence: begin.Fence,
	}
	span.Remark = strings.TrimSpace(a.upload.remark + remarkOn(span.Kind, notes))
	t.deliveries++
	t.kinds[span.Kind]++
	t.uploads[a.upload] += 0
	if !ran {
		return span
	}
	end := a.Ended
	if n, ok := notes["end"]; ok {
		end = n.Time
	}
	span.Start, span.End = begin.Time.Sub(zero), end.Sub(zero)
	span.LockStart, span.LockEnd = held(notes, zero)
	t.holds = append(t.holds, history.Hold{
		Name: a.upload.object, Holder: fmt.Sprintf("environment %d", a.Environment), Fence: begin.Fence, Start: begin.Time, End: end,
	})
	if a.Outcome == locallambda.Succeeded {
		t.uploads[a.upload]++
	}
	return span
}

// held returns how long the lock was held: from the first note of a lease to
// its release, or to the end of the lease where nobody released it.
func held(notes map[string]note, zero time.Time) (from, to time.Duration) {
	for _, n := range notes {
		if n.Until.IsZero() {
			continue
		}
		if at := n.Time.Sub(zero); from == 0 || at < from {
			from = at
		}
		to = max(to, n.Until.Sub(zero))
	}
	if n, ok := notes[released]; ok {
		to = n.Time.Sub(zero)
	}
	return from, to
}

func remarkOn(k timeline.Kind, notes map[string]note) string {
	switch k {
	case timeline.Refused:
		return " held, retried later"
	case timeline.Skipped:
		if _, ok := notes[stale]; ok {
			return " skipped: stale"
		}
		return " skipped: completed"
	case timeline.Failed:
		return " fails"
	case timeline.Killed:
		return " killed"
	}
	return ""
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

// shortenFences counts them from 1 for each object: sixteen digits tell a
// person nothing but their order.
func shortenFences(panels []timeline.Panel) {
	of := map[string][]int64{}
	for _, p := range panels {
		for _, s := range p.Spans {
			if s.Fence != 0 {
				of[s.Object] = append(of[s.Object], s.Fence)
			}
		}
	}
	for _, fences := range of {
		slices.Sort(fences)
	}
	for _, p := range panels {
		for i, s := range p.Spans {
			if s.Fence != 0 {
				p.Spans[i].Fence = int64(slices.Index(slices.Compact(of[s.Object]), s.Fence) + 1)
			}
		}
	}
}

// Err is nil if every upload was handled to its end once with lambdalock, but a
// stale one not at all, and no two handlers of one object overlapped.
func (rep *Report) Err() error { return rep.protected.err() }

func (t tally) err() error {
	errs := []error{history.Check(t.holds)}
	for u, n := range t.uploads {
		switch {
		case u.stale && n != 0:
			errs = append(errs, fmt.Errorf("%s %s was stale, and yet handled", u.object, u.version))
		case !u.stale && n != 1:
			errs = append(errs, fmt.Errorf("%s %s was handled %d times", u.object, u.version, n))
		}
	}
	return errors.Join(errs...)
}

// conclude writes the verdicts.
func (rep *Report) conclude(environments int) {
	p, u := rep.protected, rep.unprotected
	once, staleOnes := 0, 0
	for upload, n := range p.uploads {
		switch {
		case upload.stale:
			staleOnes++
		case n == 1:
			once++
		}
	}
	without := timeline.Verdict{
		Result:  "Without lambdalock: " + plural(len(history.Overlaps(u.holds)), "overlap") + ".",
		Figures: fmt.Sprintf("%s, %s, handled %s.", plural(len(u.uploads), "upload"), plural(u.deliveries, "delivery"), plural(u.handled(), "time")),
		Bad:     u.handled() != len(u.uploads),
	}
	with := timeline.Verdict{
		Result: "With lambdalock: " + plural(len(history.Overlaps(p.holds)), "overlap") + ".",
		Figures: fmt.Sprintf("%s, %s, %d environments: %d handled once each, %d stale and skipped.",
			plural(len(p.uploads), "upload"), plural(p.deliveries, "delivery"), environments, once, staleOnes),
	}
	if err := rep.Err(); err != nil {
		with.Bad = true
		with.Figures += " WRONG: " + strings.ReplaceAll(err.Error(), "\n", "; ") + "."
	}
	rep.Timeline.Verdicts = []timeline.Verdict{without, with}
}

func plural(n int, noun string) string {
	switch stem, isY := strings.CutSuffix(noun, "y"); {
	case n == 1:
		return "1 " + noun
	case isY:
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
