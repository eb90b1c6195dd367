package demo

import (
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/timeline"
	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/internal/sim/history"
	"github.com/lambdalock/lambdalock/lock"
)

// Report is what happened.
type Report struct {
	Timeline timeline.Timeline
	// Said is what the function printed to its log.
	Said []string

	uploads    map[upload]int // how often each was handled to its end
	deliveries int
	counts     map[timeline.Kind]int
	holds      []history.Hold
}

func (r *run) report(lanes int) *Report {
	rep := &Report{
		Timeline: timeline.Timeline{Title: "One lock per object", Length: time.Since(r.zero)},
		Said:     r.said, uploads: map[upload]int{}, counts: map[timeline.Kind]int{}, deliveries: len(r.attempts),
	}
	for i := range lanes {
		rep.Timeline.Lanes = append(rep.Timeline.Lanes, fmt.Sprintf("env %d", i+1))
	}
	for _, p := range r.phases {
		rep.Timeline.Phases = append(rep.Timeline.Phases, timeline.Phase{Start: p.at.Sub(r.zero), Title: p.title})
	}
	for _, a := range r.attempts {
		rep.add(a, r.zero, a.notesIn(r.notes[a.Environment]))
	}
	shortenFences(rep.Timeline.Spans)
	return rep
}

// notesIn is what the environment noted during the attempt.
func (a *attempt) notesIn(notes []note) map[string]note {
	found := map[string]note{}
	for _, n := range notes {
		if !n.Time.Before(a.Started) && !n.Time.After(a.Ended) {
			found[n.What] = n
		}
	}
	return found
}

func (rep *Report) add(a attempt, zero time.Time, notes map[string]note) {
	begin, ran := notes["begin"]
	_, tookOver := notes[string(lock.OutcomeTakenOver)]
	kind := kindOf(a.Outcome, ran, tookOver)
	rep.counts[kind]++
	rep.Timeline.Spans = append(rep.Timeline.Spans, timeline.Span{
		Lane: a.Environment, Start: a.Started.Sub(zero), End: a.Ended.Sub(zero), Kind: kind,
		Object: path.Base(a.upload.object), Label: a.remark, Fence: begin.Fence,
	})
	rep.uploads[a.upload] += 0
	if !ran {
		return
	}
	end := a.Ended
	if n, ok := notes["end"]; ok {
		end = n.Time
	}
	rep.holds = append(rep.holds, history.Hold{
		Name: a.upload.object, Who: fmt.Sprintf("environment %d", a.Environment), Fence: begin.Fence, Start: begin.Time, End: end,
	})
	if a.Outcome == locallambda.Succeeded {
		rep.uploads[a.upload]++
	}
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

// shortenFences counts them from 1 for each object: sixteen digits tell a person
// nothing but their order.
func shortenFences(spans []timeline.Span) {
	of := map[string][]int64{}
	for _, s := range spans {
		if s.Fence != 0 && !slices.Contains(of[s.Object], s.Fence) {
			of[s.Object] = append(of[s.Object], s.Fence)
		}
	}
	for _, fences := range of {
		slices.Sort(fences)
	}
	for i, s := range spans {
		if s.Fence != 0 {
			spans[i].Fence = int64(slices.Index(of[s.Object], s.Fence) + 1)
		}
	}
}

// Err is nil if every upload was handled to its end once, but a stale one not at all,
// and no two handlers of one object overlapped.
func (rep *Report) Err() error {
	errs := []error{history.Check(rep.holds)}
	for u, n := range rep.uploads {
		switch {
		case u.stale && n != 0:
			errs = append(errs, fmt.Errorf("%s %s was stale, and yet handled", u.object, u.version))
		case !u.stale && n != 1:
			errs = append(errs, fmt.Errorf("%s %s was handled %d times", u.object, u.version, n))
		}
	}
	return errors.Join(errs...)
}

// Summary writes the figures, and the verdict of Err.
func (rep *Report) Summary(w io.Writer) error {
	handled, stale := 0, 0
	for u, n := range rep.uploads {
		handled += n
		if u.stale {
			stale++
		}
	}
	c := rep.counts
	_, err := fmt.Fprintf(w, "uploads %d   deliveries %d   handled %d   skipped %d   stale %d   refused and redelivered %d   failed %d   killed %d   taken over %d   overlaps %d\n",
		len(rep.uploads), rep.deliveries, handled, c[timeline.Skipped], stale, c[timeline.Refused], c[timeline.Failed], c[timeline.Killed], c[timeline.TookOver], len(history.Overlaps(rep.holds)))
	if err != nil {
		return err
	}
	verdict := fmt.Sprintf("%d of %d uploads were handled to their end, once each; %d stale, skipped as the key asks. No two handlers of one object overlapped.",
		handled, len(rep.uploads), stale)
	if err := rep.Err(); err != nil {
		verdict = "WRONG:\n  " + strings.ReplaceAll(err.Error(), "\n", "\n  ")
	}
	_, err = fmt.Fprintln(w, verdict)
	return err
}
