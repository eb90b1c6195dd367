package invoke

import (
	"cmp"
	"fmt"
	"io"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/internal/local/localtable"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// fates counts the records of batches, and of other events with several, by
// what became of them.
type fates struct {
	delivered, ran, skipped, ignored, held, failed int

	hidden  bool // the log may hide why records did not run
	unclear bool // it does not tell which records its lines are of, or is cut off
	visible bool // it shows outcomes of the level INFO
	shared  bool // it is that of several invocations
}

func (f *fates) add(other fates) {
	f.delivered += other.delivered
	f.ran += other.ran
	f.skipped += other.skipped
	f.ignored += other.ignored
	f.held += other.held
	f.failed += other.failed
	f.hidden = f.hidden || other.hidden
	f.unclear = f.unclear || other.unclear
	f.visible = f.visible || other.visible
	f.shared = f.shared || other.shared
}

// fatesOf counts the records of a delivery. A record that the source delivers
// again, or would if it read the answer, was held or failed. Of the others, the
// log names those that were skipped or ignored, and the rest ran. The claims
// show whether the log can be trusted to do so.
func (v *delivery) fatesOf(log tally, claims localtable.Claims) fates {
	f, back := fates{delivered: len(v.records)}, len(v.failed)
	if e := v.records[0].event; e.batch == nil && e.several == 0 {
		return fates{}
	} else if e.batch == nil {
		f.delivered, back = e.several, cmp.Or(v.named, back*e.several) // it is delivered again as a whole
	}
	var (
		done    = f.delivered - back
		skips   = log.sum(lock.OutcomeAlreadyCompleted, lock.OutcomeStale, lock.OutcomeCoalesced)
		got     = max(claims.Acquired, log.sum(lock.OutcomeAcquired, lock.OutcomeTakenOver, middleware.OutcomeUnlocked, middleware.OutcomeNoLock))
		refused = skips + log.sum(lock.OutcomeHeld, lock.OutcomeMismatch)
		errors  = log.sum(middleware.OutcomeHandlerFailed, lock.OutcomeRefused, lock.OutcomeStoreFailed, lock.OutcomeMismatch, lock.OutcomeLost, lock.OutcomeCompleteFailed)
	)
	f.held = min(log[lock.OutcomeHeld], max(0, back-errors))
	f.failed = back - f.held
	f.skipped = min(skips+log[lock.OutcomeHeld]-f.held, done) // OnHeld(Skip) skips what is held, too
	f.ignored = min(log[middleware.OutcomeIgnored], done-f.skipped)
	f.ran = done - f.skipped - f.ignored
	f.visible = log.any(lock.OutcomeAlreadyCompleted, lock.OutcomeStale, lock.OutcomeCoalesced, lock.OutcomeHeld)
	f.hidden = got+refused+f.ignored < done || claims.Refused > refused
	whole := v.result.Outcome != locallambda.Succeeded
	cut := len(v.result.Log) >= locallambda.MaxLog
	f.unclear = cut || log.any(lock.OutcomeInterrupted) || !whole && done > 0 && skips > 0 && back > errors+f.held
	return f
}

// print writes the line about the records, unless there were none. Unknown
// numbers are not told apart.
func (f *fates) print(out io.Writer, noun string, givenUp int) {
	if f.delivered == 0 {
		return
	}
	fmt.Fprintf(out, "%ss delivered %d", noun, f.delivered)
	ignored := ""
	if f.ignored > 0 {
		ignored = fmt.Sprintf("   ignored %d", f.ignored)
	}
	hidden := f.hidden && !f.visible
	if !hidden && !f.unclear {
		fmt.Fprintf(out, "   ran %d   skipped %d%s   held %d   failed %d   given up %d\n", f.ran, f.skipped, ignored, f.held, f.failed, givenUp)
		return
	}
	hint := ""
	switch {
	case f.shared:
		hint = ", because --concurrency above 1 mixes the lines of several invocations"
	case hidden:
		hint = "; at level INFO it does, if each has a lock"
	}
	fmt.Fprintf(out, "   ran or skipped %d%s   held or failed %d   given up %d   (the function's log does not tell which%s)\n",
		f.ran+f.skipped, ignored, f.held+f.failed, givenUp, hint)
}
