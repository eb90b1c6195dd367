package invoke

import (
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
	refused     = "refused"   // by an answer of the function, which is not delivered again
	ignored     = "ignored"   // acknowledged, because the event holds nothing to work on
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
// not, nor one that was acknowledged because it holds nothing to work on.
func (o outcome) completed() bool {
	switch o.word {
	case ran, skipped, succeeded:
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
	coalesced = "coalesced" // the holder runs once more for it
	unlocked  = "unlocked"
	noLock    = "no lock"            // the key function said that none is needed
	unknown   = "interrupted before" // OnInterrupted decided about an earlier run
	another   = "another request"    // or other credentials, with the key of one before
)

// noted holds what the log may add to an outcome. The first that is in the log
// counts.
var noted = map[string][]struct {
	logged lock.Outcome
	note   string
}{
	ran:     {{lock.OutcomeTakenOver, takenOver}, {middleware.OutcomeUnlocked, unlocked}, {middleware.OutcomeNoLock, noLock}},
	skipped: {{lock.OutcomeStale, stale}, {lock.OutcomeAlreadyCompleted, completed}, {lock.OutcomeCoalesced, coalesced}, {lock.OutcomeHeld, held}},
	refused: {{lock.OutcomeMismatch, another}},
}

// explain adds what only the log says.
func (o outcome) explain(log tally) outcome {
	for _, n := range noted[o.word] {
		if log.any(n.logged) {
			return o.note(n.note)
		}
	}
	return o
}

// outcomeOf judges a delivery by its result, by what the invocation claimed
// from an embedded table, and by the lines that lambdalock logs by default.
func outcomeOf(r locallambda.Result, log tally, claims localtable.Claims, records int) outcome {
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
	// Records that were interrupted have got their locks before OnInterrupted is
	// asked. If others got theirs, these ran.
	got := max(claims.Acquired, log.sum(lock.OutcomeTakenOver, middleware.OutcomeUnlocked, middleware.OutcomeNoLock))
	if n := log[lock.OutcomeInterrupted]; n > 0 && (records <= 1 || n >= got) {
		return outcome{word: succeeded}.note(unknown)
	}
	if claims.Acquired+claims.Refused == 0 {
		return byLog(log, records)
	}
	o := outcome{word: skipped}
	switch {
	case claims.Acquired > 0:
		o.word = ran
	case log.any(lock.OutcomeMismatch):
		o.word = refused
	}
	if claims.Waited {
		o = o.note(waited)
	}
	return o.explain(log)
}

func failure(r locallambda.Result, log tally) outcome {
	switch {
	case r.ErrorType == "HeldError" || r.ErrorType == "BatchError" && onlyHeld(log):
		return outcome{word: held}
	case r.ErrorType == "CompletedError":
		return outcome{word: failed}.note(completed) // as OnCompleted(Fail) asks
	case r.ErrorType == "InterruptedError":
		return outcome{word: failed}.note(unknown)
	}
	return outcome{word: failed}
}

// onlyHeld reports whether every record that a batch returned was held, and
// none failed.
func onlyHeld(log tally) bool {
	return log.any(lock.OutcomeHeld) && !log.any(middleware.OutcomeHandlerFailed, lock.OutcomeStoreFailed, lock.OutcomeRefused, lock.OutcomeInterrupted)
}

// byLog returns what the log alone tells. It does not tell by default that a
// lock was acquired, nor how many of several records were skipped.
func byLog(log tally, records int) outcome {
	switch {
	case log.any(lock.OutcomeTakenOver, middleware.OutcomeUnlocked, middleware.OutcomeNoLock):
		return outcome{word: ran}.explain(log)
	case log.any(lock.OutcomeRefused, lock.OutcomeMismatch):
		return outcome{word: refused}.explain(log)
	case log[middleware.OutcomeIgnored] >= records:
		return outcome{word: ignored}
	case records <= 1 && log.any(lock.OutcomeAlreadyCompleted, lock.OutcomeStale, lock.OutcomeCoalesced, lock.OutcomeHeld):
		return outcome{word: skipped}.explain(log)
	}
	return outcome{word: succeeded}
}
