package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
)

// report prints a row for each delivery, and in the end a summary.
type report struct {
	begun time.Time

	mu         sync.Mutex // guards what follows, and keeps rows whole
	out        io.Writer
	deliveries int
	counts     map[string]int
	open       map[*event][]string // the records that no delivery has completed
}

// whole stands for the one record of an event that is not a batch.
const whole = ""

func newReport(out io.Writer, events []*event) *report {
	r := &report{begun: time.Now(), out: out, counts: map[string]int{}, open: map[*event][]string{}}
	for _, e := range events {
		r.open[e] = []string{whole}
		if e.batch != nil {
			r.open[e] = slices.Clone(e.batch.ids)
		}
	}
	fmt.Fprintln(out, "    at  env   took  outcome                     event")
	return r
}

// row is one delivery that ended.
type row struct {
	event     *event
	outcome   outcome
	result    locallambda.Result
	completed []string // the records that it completed
	remark    string   // shown in place of the answer
}

func (r *report) add(w row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(w)
	result := w.result
	text := oneLine(w.remark, longestAnswer)
	switch {
	case text != "":
	case result.Outcome == locallambda.Succeeded:
		text = oneLine(string(result.Payload), longestAnswer)
	default:
		text = oneLine(result.ErrorType+": "+result.ErrorMessage, longestError)
	}
	fmt.Fprintf(r.out, "%5.2fs  %3d  %4.2fs  %-26s  %s  %s\n", result.Started.Sub(r.begun).Seconds(), result.Environment,
		result.Ended.Sub(result.Started).Seconds(), w.outcome, w.event.name, text)
}

// interrupt adds a delivery that has not ended.
func (r *report) interrupt(e *event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(row{event: e, outcome: outcome{word: interrupted}})
	fmt.Fprintf(r.out, "    -    -      -  %-26s  %s\n", interrupted, e.name)
}

func (r *report) count(w row) {
	r.deliveries++
	r.counts[w.outcome.word]++
	r.open[w.event] = slices.DeleteFunc(r.open[w.event], func(id string) bool { return slices.Contains(w.completed, id) })
}

// words are the outcomes in the order of the summary, which has ran, skipped
// and failed always, and the others if there are any.
var words = []string{ran, skipped, succeeded, held, refused, ignored, timedOut, killed, crashed, interrupted, partly, failed}

// summary prints how many deliveries had each outcome. Its error names the
// events that were not completed.
func (r *report) summary(events []*event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, "deliveries %d", r.deliveries)
	for _, word := range words {
		if n := r.counts[word]; n > 0 || word == ran || word == skipped || word == failed {
			fmt.Fprintf(r.out, "   %s %d", word, n)
		}
	}
	var names []string
	for _, e := range events {
		if open := r.open[e]; len(open) > 0 {
			names = append(names, e.missing(open))
		}
	}
	fmt.Fprintf(r.out, "   events %d   not completed %d\n", len(events), len(names))
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("not completed: %s", strings.Join(names, ", "))
}

// missing names an event, and those of its records that are not completed.
func (e *event) missing(open []string) string {
	if e.batch == nil {
		return e.name
	}
	return fmt.Sprintf("%s (%s: %s)", e.name, e.batch.share(open), oneLine(strings.Join(open, " "), longestError))
}

// The characters shown of an answer, and of an error, whose cause is at its
// end.
const (
	longestAnswer = 120
	longestError  = 400
)

// oneLine shortens a text from a function and replaces its control characters,
// so that it is safe to print and stays on one line.
func oneLine(s string, longest int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if runes := []rune(s); len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return s
}
