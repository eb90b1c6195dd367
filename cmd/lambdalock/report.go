package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
)

// report prints a row for each delivery, and in the end what became of the events.
type report struct {
	begun time.Time

	mu         sync.Mutex // guards what follows, and keeps rows whole
	out        io.Writer
	deliveries int
	counts     map[string]int
	open       map[*event][]string // the records that no delivery has completed
}

// whole is the one record of an event that is no batch.
const whole = ""

func newReport(out io.Writer, events []*event) *report {
	r := &report{begun: time.Now(), out: out, counts: map[string]int{}, open: map[*event][]string{}}
	for _, e := range events {
		r.open[e] = []string{whole}
		if e.batch != nil {
			r.open[e] = e.batch.ids()
		}
	}
	fmt.Fprintln(out, "    at  env   took  outcome            event")
	return r
}

// row is one delivery that ended.
type row struct {
	event     *event
	outcome   outcome
	result    locallambda.Result
	completed []string // records
	remark    string   // in place of the answer
}

func (r *report) add(w row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(w)
	text := oneLine(w.remark, longestAnswer)
	switch {
	case text != "":
	case w.result.Outcome == locallambda.Succeeded:
		text = oneLine(string(w.result.Payload), longestAnswer)
	default:
		text = oneLine(w.result.ErrorType+": "+w.result.ErrorMessage, longestError)
	}
	fmt.Fprintf(r.out, "%5.2fs  %3d  %4.2fs  %-17s  %s  %s\n", w.result.Started.Sub(r.begun).Seconds(), w.result.Environment,
		w.result.Ended.Sub(w.result.Started).Seconds(), w.outcome, w.event.name, text)
}

func (r *report) count(w row) {
	r.deliveries++
	r.counts[w.outcome.word]++
	r.open[w.event] = slices.DeleteFunc(r.open[w.event], func(id string) bool { return slices.Contains(w.completed, id) })
}

// interrupt adds a delivery that has no end.
func (r *report) interrupt(e *event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(row{event: e, outcome: outcome{word: interrupted}})
	fmt.Fprintf(r.out, "    -    -      -  %-17s  %s\n", interrupted, e.name)
}

// shown are the counts of the summary: the first and last always, the others where
// there are any.
var shown = []string{ran, skipped, succeeded, held, refused, ignored, timedOut, killed, crashed, interrupted, partly, failed}

// summary prints the figures. The error names the events that were not completed.
func (r *report) summary(events []*event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, "deliveries %d", r.deliveries)
	for _, word := range shown {
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

// missing names an event, and what of it is not completed.
func (e *event) missing(open []string) string {
	if e.batch == nil {
		return e.name
	}
	return fmt.Sprintf("%s (%s: %s)", e.name, e.batch.share(open), oneLine(strings.Join(open, " "), longestError))
}

// What is shown of an answer, and of an error, whose cause is at its end.
const (
	longestAnswer = 120
	longestError  = 400
)

// oneLine makes a text that a function chose fit for a line of a terminal.
func oneLine(s string, longest int) string {
	s = strings.ToValidUTF8(s, "?")
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return s
}
