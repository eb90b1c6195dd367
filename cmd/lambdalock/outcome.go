package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/internal/local/localtable"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// The outcomes of a delivery. What Lambda calls a success may be a handler that ran, or
// one that did not have to.
const (
	ran         = "ran"
	skipped     = "skipped"
	succeeded   = "succeeded" // whether the handler ran is not known
	held        = "held"      // refused because of a lock, to be delivered again
	refused     = "refused"   // no key could be had, which the function answered by itself
	ignored     = "ignored"   // the event holds nothing to work on
	timedOut    = "timed out"
	killed      = "killed"
	crashed     = "crashed"
	interrupted = "interrupted"    // by Ctrl-C
	partly      = "failed in part" // some records of a batch, the others were completed
	failed      = "failed"
)

// outcome is what became of a delivery.
type outcome struct {
	word  string
	notes []string // such as why a handler was skipped
}

func (o outcome) String() string {
	if len(o.notes) == 0 {
		return o.word
	}
	return o.word + " (" + strings.Join(o.notes, ", ") + ")"
}

func (o outcome) note(n string) outcome {
	return outcome{o.word, append(slices.Clone(o.notes), n)}
}

// heldUp reports whether another invocation's lock was in the way.
func (o outcome) heldUp() bool { return o.word == held || slices.Contains(o.notes, held) }

// completed reports whether the event needs no further delivery: it was handled now or
// earlier. A delivery that was skipped while another one was at work does not count.
func (o outcome) completed() bool {
	switch o.word {
	case ran, skipped, succeeded, ignored:
		return !o.heldUp()
	}
	return slices.Contains(o.notes, completed)
}

// The notes.
const (
	completed = "completed"
	stale     = "stale"
	waited    = "waited"
	takenOver = "taken over"
	unlocked  = "unlocked"
)

// noteOf is the note for what the function's log says.
var noteOf = map[lock.Outcome]string{
	lock.OutcomeAlreadyCompleted: completed,
	lock.OutcomeStale:            stale,
	lock.OutcomeHeld:             held,
	lock.OutcomeTakenOver:        takenOver,
	middleware.OutcomeUnlocked:   unlocked,
}

// outcomeOf judges an attempt by three things: its result; what the embedded table saw
// of it, if there is one; and the lines that lambdalock logs by default.
func outcomeOf(r locallambda.Result, table *localtable.Table, records int) outcome {
	log := logged(r.Log)
	var asked localtable.Asked
	if table != nil {
		asked = table.Asked(r.RequestID, r.LogStream)
	}
	switch r.Outcome {
	case locallambda.TimedOut:
		return outcome{word: timedOut}
	case locallambda.Crashed:
		if strings.HasSuffix(r.ErrorMessage, "signal: killed") {
			return outcome{word: killed}
		}
		return outcome{word: crashed}
	case locallambda.Failed:
		return failure(r, log)
	}
	var o outcome
	switch {
	case asked.Acquired > 0:
		o.word = ran
	case asked.Refused > 0:
		o.word = skipped
	default:
		return byLog(log, records)
	}
	if asked.Waited {
		o = o.note(waited)
	}
	return o.explain(log)
}

// explain adds what only the log says.
func (o outcome) explain(log map[lock.Outcome]bool) outcome {
	why := []lock.Outcome{lock.OutcomeStale, lock.OutcomeAlreadyCompleted, lock.OutcomeHeld}
	if o.word == ran {
		why = []lock.Outcome{lock.OutcomeTakenOver, middleware.OutcomeUnlocked}
	}
	for _, outcome := range why {
		if log[outcome] {
			return o.note(noteOf[outcome])
		}
	}
	return o
}

func failure(r locallambda.Result, log map[lock.Outcome]bool) outcome {
	switch {
	case r.ErrorType == "HeldError" || r.ErrorType == "BatchError" && onlyHeld(log):
		return outcome{word: held}
	case r.ErrorType == "CompletedError":
		return outcome{word: failed}.note(completed) // as OnCompleted(Fail) asks
	}
	return outcome{word: failed}
}

// onlyHeld reports whether no record of a batch failed by itself.
func onlyHeld(log map[lock.Outcome]bool) bool {
	return log[lock.OutcomeHeld] && !log[middleware.OutcomeHandlerFailed] && !log[lock.OutcomeStoreFailed] && !log[lock.OutcomeRefused]
}

// byLog is what can be known without the table. That a lock was acquired is not logged
// by default, and of several records some may have been skipped.
func byLog(log map[lock.Outcome]bool, records int) outcome {
	switch {
	case log[lock.OutcomeTakenOver], log[middleware.OutcomeUnlocked]:
		return outcome{word: ran}.explain(log)
	case log[lock.OutcomeRefused]:
		return outcome{word: refused}
	case log[middleware.OutcomeIgnored]:
		return outcome{word: ignored}
	case records <= 1 && (log[lock.OutcomeAlreadyCompleted] || log[lock.OutcomeStale] || log[lock.OutcomeHeld]):
		return outcome{word: skipped}.explain(log)
	}
	return outcome{word: succeeded}
}

// logLine finds an outcome in a line of the log, as text or as JSON. Each of these lines
// says how many requests it took.
var logLine = regexp.MustCompile(
	`lambdalock: (held|already_completed|stale|taken_over|unlocked|ignored|refused|handler_failed|store_failed)\b.*requests"?[=:]`)

// logged returns the outcomes in the log of an invocation.
func logged(lines []string) map[lock.Outcome]bool {
	outcomes := map[lock.Outcome]bool{}
	for _, line := range lines {
		if m := logLine.FindStringSubmatch(line); m != nil {
			outcomes[lock.Outcome(m[1])] = true
		}
	}
	return outcomes
}
