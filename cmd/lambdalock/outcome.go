package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/internal/local/localtable"
	"github.com/lambdalock/lambdalock/lock"
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

// heldUp: the lock of somebody else was in the way.
func (o outcome) heldUp() bool { return o.word == held || slices.Contains(o.notes, held) }

// completed reports whether the event needs no further delivery: it was handled, or had
// been. To be skipped while another delivery is at work is no such thing.
func (o outcome) completed() bool {
	switch o.word {
	case ran, skipped, succeeded, ignored:
		return !o.heldUp()
	}
	return slices.Contains(o.notes, done)
}

// The notes, where they are not what the function's log says.
const (
	done     = "done"
	stale    = "stale"
	waited   = "waited"
	tookOver = "took over"
	unlocked = "unlocked"
)

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
func (o outcome) explain(log map[lock.Kind]bool) outcome {
	why := []string{stale, done, held}
	if o.word == ran {
		why = []string{tookOver, unlocked}
	}
	for _, kind := range why {
		if log[lock.Kind(kind)] {
			return o.note(kind)
		}
	}
	return o
}

func failure(r locallambda.Result, log map[lock.Kind]bool) outcome {
	switch {
	case r.ErrorType == "HeldError" || r.ErrorType == "BatchError" && onlyHeld(log):
		return outcome{word: held}
	case r.ErrorType == "DoneError":
		return outcome{word: failed}.note(done) // as OnDone(Fail) asks
	}
	return outcome{word: failed}
}

// onlyHeld: of the records of a batch none failed by itself.
func onlyHeld(log map[lock.Kind]bool) bool {
	return log["held"] && !log["work failed"] && !log["store failed"] && !log["refused"]
}

// byLog is what can be known without the table. That a lock was acquired is not logged
// by default, and of several records some may have been skipped.
func byLog(log map[lock.Kind]bool, records int) outcome {
	switch {
	case log[tookOver], log[unlocked]:
		return outcome{word: ran}.explain(log)
	case log["refused"]:
		return outcome{word: refused}
	case log["ignored"]:
		return outcome{word: ignored}
	case records <= 1 && (log[done] || log[stale] || log[held]):
		return outcome{word: skipped}.explain(log)
	}
	return outcome{word: succeeded}
}

// logLine finds the kind of an observation in a line of the log, as text or as JSON.
// Each of these lines says how many requests it took.
var logLine = regexp.MustCompile(
	`lambdalock: (held|done|stale|took over|unlocked|ignored|refused|work failed|store failed)\b.*requests"?[=:]`)

// logged returns the kinds of observations in the log of an invocation.
func logged(lines []string) map[lock.Kind]bool {
	kinds := map[lock.Kind]bool{}
	for _, line := range lines {
		if m := logLine.FindStringSubmatch(line); m != nil {
			kinds[lock.Kind(m[1])] = true
		}
	}
	return kinds
}
