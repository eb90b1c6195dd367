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
	delivered, ran, skipped, ignored, held, failed, notBegun int

	// behind are those that ran or were skipped, and yet come again: because they
	// are behind one of a stream that was held or failed, or because the batch
	// failed as a whole. Which they are, the log does not tell.
	behind int

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
	f.notBegun += other.notBegun
	f.behind += other.behind
	f.hidden = f.hidden || other.hidden
	f.unclear = f.unclear || other.unclear
	f.visible = f.visible || other.visible
	f.shared = f.shared || other.shared
}

// fatesOf counts the records of a delivery. A record that the source delivers
// again, or would if it read the answer, was held, failed or not begun. Of the
// others, the log names those that were skipped or ignored, and the rest ran.
// The claims show whether the log can be trusted to do so.
//
// From a stream, all that follow the first record in the answer come again.
// Those of them that were held, failed or not begun have a line for that, and
// the rest belong to the others. From a batch that failed as a whole, those
// that were skipped do.
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
		late    = log.sum(lock.OutcomeLost, lock.OutcomeCompleteFailed) // such a record may have another line
		errors  = late + log.sum(middleware.OutcomeHandlerFailed, lock.OutcomeRefused, lock.OutcomeStoreFailed, lock.OutcomeMismatch)
		whole   = v.result.Outcome != locallambda.Succeeded
	)
	f.notBegun = min(log[middleware.OutcomeNotBegun], back)
	f.held = min(log[lock.OutcomeHeld], max(0, back-f.notBegun-errors))
	f.failed = back - f.notBegun - f.held
	switch b := v.records[0].event.batch; {
	case b == nil || back == 0:
	case whole:
		f.behind = max(0, min(f.failed, skips, back-1))
	case b.stream():
		f.behind = max(0, min(f.failed-errors+late, back-1))
		f.unclear = f.behind > 0 && (late > 0 || errors+f.held+f.notBegun == 0)
	}
	f.failed -= f.behind
	done += f.behind
	f.skipped = min(skips+log[lock.OutcomeHeld]-f.held, done) // OnHeld(Skip) skips what is held, too
	f.ignored = min(log[middleware.OutcomeIgnored], done-f.skipped)
	f.ran = done - f.skipped - f.ignored
	f.visible = log.any(lock.OutcomeAlreadyCompleted, lock.OutcomeStale, lock.OutcomeCoalesced, lock.OutcomeHeld)
	f.hidden = got+refused+f.ignored < done || claims.Refused > refused
	f.behind = min(f.behind, f.ran+f.skipped)
	cut := len(v.result.Log) >= locallambda.MaxLog
	f.unclear = f.unclear || cut || log.any(lock.OutcomeInterrupted) || !whole && done > 0 && skips > 0 && f.failed > errors
	return f
}

// untold is said of records that the lines of a log cannot be told to be of.
const untold = "the function's log does not tell which"

// print writes the line about the records, unless there were none. Unknown
// numbers are not told apart.
func (f *fates) print(out io.Writer, noun string, givenUp int) {
	if f.delivered == 0 {
		return
	}
	fmt.Fprintf(out, "%ss delivered %d", noun, f.delivered)
	some := func(word string, n int) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprintf("   %s %d", word, n)
	}
	ignored, notBegun := some(ignored, f.ignored), some("not begun", f.notBegun)
	hidden := f.hidden && !f.visible
	if !hidden && !f.unclear {
		fmt.Fprintf(out, "   ran %d   skipped %d%s   held %d   failed %d%s   given up %d\n", f.ran, f.skipped, ignored, f.held, f.failed, notBegun, givenUp)
		return
	}
	hint := ""
	switch {
	case f.shared:
		hint = ", because --concurrency above 1 mixes the lines of several invocations"
	case hidden:
		hint = "; at level INFO it does, if each has a lock"
	}
	fmt.Fprintf(out, "   ran or skipped %d%s   held or failed %d%s%s   given up %d   (%s%s)\n",
		f.ran+f.skipped-f.behind, ignored, f.held+f.failed, notBegun, some("returned with them", f.behind), givenUp, untold, hint)
}
