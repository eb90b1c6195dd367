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

// The outcomes of a delivery. Where Lambda reports a success, the handler ran
// or was skipped.
const (
	ran         = "ran"
	skipped     = "skipped"
	succeeded   = "succeeded" // it is unknown whether the handler ran
	held        = "held"      // refused because of a lock, to be delivered again
	refused     = "refused"   // the event gave no key, and the function answered that itself
	ignored     = "ignored"   // the event holds nothing to work on
	timedOut    = "timed out"
	killed      = "killed"
	crashed     = "crashed"
	interrupted = "interrupted"    // by Ctrl-C
	partly      = "failed in part" // some records of a batch; the others were completed
	failed      = "failed"
)

// outcome says what became of a delivery.
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

// completed reports whether the event needs no further delivery because it was
// completed now or earlier. One that was skipped because its lock was held was
// not.
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

// noted holds what the log may add to an outcome. The first that is in the log
// counts.
var noted = map[string][]struct {
	logged lock.Outcome
	note   string
}{
	ran:     {{lock.OutcomeTakenOver, takenOver}, {middleware.OutcomeUnlocked, unlocked}},
	skipped: {{lock.OutcomeStale, stale}, {lock.OutcomeAlreadyCompleted, completed}, {lock.OutcomeHeld, held}},
}

// explain adds what only the log says.
func (o outcome) explain(log map[lock.Outcome]bool) outcome {
	for _, n := range noted[o.word] {
		if log[n.logged] {
			return o.note(n.note)
		}
	}
	return o
}

// outcomeOf judges a delivery by its result, by what the invocation claimed
// from an embedded table, and by the lines that lambdalock logs by default.
func outcomeOf(r locallambda.Result, claims localtable.Claims, records int) outcome {
	log := logged(r.Log)
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
	if claims.Acquired+claims.Refused == 0 {
		return byLog(log, records)
	}
	o := outcome{word: skipped}
	if claims.Acquired > 0 {
		o.word = ran
	}
	if claims.Waited {
		o = o.note(waited)
	}
	return o.explain(log)
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

// onlyHeld reports whether every record that a batch returned was held, and
// none failed.
func onlyHeld(log map[lock.Outcome]bool) bool {
	return log[lock.OutcomeHeld] && !log[middleware.OutcomeHandlerFailed] && !log[lock.OutcomeStoreFailed] && !log[lock.OutcomeRefused]
}

// byLog returns what the log alone tells. It does not tell by default that a
// lock was acquired, nor how many of several records were skipped.
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

// logLine finds an outcome in a line of the log, as text or as JSON. The number
// of requests, which each of these lines has, tells them from the text of an
// error.
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
