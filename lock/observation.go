package lock

import (
	"log/slog"
	"time"

	"github.com/lambdalock/lambdalock/internal/event/printable"
)

// Outcome says how a request, a wait or a lease ended. Its text is also the log
// message, after "lambdalock: ".
type Outcome string

// The outcomes. Whenever one occurs, Options.Observe is called, and one line of
// the level given here is logged.
const (
	OutcomeAcquired         Outcome = "acquired"          // debug
	OutcomeTakenOver        Outcome = "taken_over"        // acquired from a holder that died: warn
	OutcomeRequeued         Outcome = "requeued"          // the store throttles the claim of a record, which goes back to the queue of its batch: debug
	OutcomeHeld             Outcome = "held"              // by another invocation: info
	OutcomeCoalesced        Outcome = "coalesced"         // acknowledged, because the holder runs once more for it, or a record of its batch has run: info
	OutcomeAlreadyCompleted Outcome = "already_completed" // info
	OutcomeStale            Outcome = "stale"             // info
	OutcomeMismatch         Outcome = "mismatch"          // the event came before with another payload: warn
	OutcomeInterrupted      Outcome = "interrupted"       // acquired, and Options.OnInterrupted decides about an earlier run that was interrupted: warn
	OutcomeRenewed          Outcome = "renewed"           // debug; with an Err, because the work has outlived its context: warn
	OutcomeLost             Outcome = "lost"              // another handler may have worked at the same time: error
	OutcomeReleased         Outcome = "released"          // debug
	OutcomeCompleteFailed   Outcome = "complete_failed"   // the work succeeded, but the event could not be completed: error
	OutcomeResultDropped    Outcome = "result_dropped"    // completed, but the result is too large to replay or cannot be encoded: warn
	OutcomeForgotten        Outcome = "forgotten"         // completed, and older events are forgotten for lack of room: info
	OutcomeStoreFailed      Outcome = "store_failed"      // error
	OutcomeRefused          Outcome = "refused"           // no usable key, a wrong setting, too little time, or a canceled context: error; of package middleware at info if a client gets status 400
)

func (o Outcome) level() slog.Level {
	switch o {
	case OutcomeAcquired, OutcomeRequeued, OutcomeRenewed, OutcomeReleased:
		return slog.LevelDebug
	case OutcomeHeld, OutcomeCoalesced, OutcomeAlreadyCompleted, OutcomeStale, OutcomeForgotten:
		return slog.LevelInfo
	case OutcomeLost, OutcomeCompleteFailed, OutcomeStoreFailed, OutcomeRefused:
		return slog.LevelError
	}
	return slog.LevelWarn
}

// Observation describes one outcome. Fields that an outcome does not have are
// zero.
type Observation struct {
	Outcome Outcome
	// Op is the operation that ended with the outcome: acquire, renew, complete or
	// release. Empty: none did; the outcome tells more about one that another
	// observation reports, or is one of package middleware.
	Op        string
	Namespace string    // of the lock
	Store     string    // as in [StoreError]; empty if the store has no String method
	Key       Key       // as given; it may hold personal data
	Fence     int64     // of the lock that was acquired, or that is in the way
	Holder    string    // of the lock that is in the way, or that was taken over
	Until     time.Time // end of the lease
	// Began is when Acquire, Complete or Release was called, or when the requests
	// of a renewal began.
	Began     time.Time
	Duration  time.Duration // from Began to the outcome
	Waited    time.Duration // for a holder, as a part of Duration
	HeldFor   time.Duration // since the lock was acquired
	Requests  int           // sent to the store that no outcome before this one counts
	Completed bool          // of OutcomeReleased: the event was completed too
	Duplicate bool          // of OutcomeHeld: the holder works on the same event
	// Forgotten is how many events are forgotten although they have not expired;
	// see [Options.RememberEvents].
	Forgotten int
	Records   int   // that middleware.OutcomeNotBegun speaks of
	Err       error // why, if the outcome is a refusal or a failure
}

// Failed reports whether the outcome is a failure. Nothing is wrong with a
// refusal, such as that of a duplicate, whose Err is only its reason.
func (o Observation) Failed() bool { return o.Err != nil && o.level() >= slog.LevelWarn }

func (o Observation) level() slog.Level {
	if o.Outcome == OutcomeRenewed && o.Err != nil {
		return slog.LevelWarn
	}
	return o.Outcome.level()
}

// LogValue implements [slog.LogValuer]. Its attributes are, where there are
// any, key (the digest of the name), duration, waited, requests, fence,
// completed, forgotten, holder with until, and error, which is called reason if
// the outcome is not a failure. It shows neither name nor event.
func (o Observation) LogValue() slog.Value {
	var attrs []slog.Attr
	if o.Key.Name != "" {
		attrs = append(attrs, slog.String("key", o.Key.Digest()))
	}
	if o.Duration != 0 {
		attrs = append(attrs, slog.Duration("duration", o.Duration))
	}
	if o.Waited != 0 {
		attrs = append(attrs, slog.Duration("waited", o.Waited))
	}
	if o.Requests != 0 {
		attrs = append(attrs, slog.Int("requests", o.Requests))
	}
	if o.Fence != 0 {
		attrs = append(attrs, slog.Int64("fence", o.Fence))
	}
	if o.Completed {
		attrs = append(attrs, slog.Bool("completed", true))
	}
	if o.Forgotten != 0 {
		attrs = append(attrs, slog.Int("forgotten", o.Forgotten))
	}
	if o.Holder != "" {
		attrs = append(attrs, slog.String("holder", printable.Text(o.Holder)), slog.Time("until", o.Until))
	}
	if o.Err != nil {
		why := "reason"
		if o.Failed() {
			why = "error"
		}
		attrs = append(attrs, slog.String(why, printable.Text(o.Err.Error())))
	}
	return slog.GroupValue(attrs...)
}
