package lock

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// Kind is an outcome worth counting.
type Kind string

// The outcomes. Each is reported once, to Options.Observe and in one log line.
const (
	Acquired      Kind = "acquired"       // debug
	TookOver      Kind = "took over"      // acquired from a holder that died: warn
	Waited        Kind = "waited"         // before the outcome that follows: debug
	HeldByOther   Kind = "held"           // info
	AlreadyDone   Kind = "done"           // info
	Overtaken     Kind = "stale"          // info
	Renewed       Kind = "renewed"        // debug
	Lost          Kind = "lost"           // warn
	Released      Kind = "released"       // debug
	RecordFailed  Kind = "record failed"  // the work is done, but that could not be recorded: error
	ResultDropped Kind = "result dropped" // completed, but the result is too large to replay or cannot be encoded: warn
	Forgotten     Kind = "forgotten"      // completed, and older events are not remembered any more, for lack of room: info
	StoreFailed   Kind = "store failed"   // error
	Refused       Kind = "refused"        // no usable key, a wrong setting, or too little time: error
	Unlocked      Kind = "unlocked"       // the work runs without a lock, as FailOpen asked: error
	Ignored       Kind = "ignored"        // the event holds nothing to work on: warn
	WorkFailed    Kind = "work failed"    // the handler of one record of a batch returned an error, or panicked: error
	NotBegun      Kind = "not begun"      // records of a batch are returned untouched: warn
	Overdue       Kind = "overdue"        // the handler of one record of a batch goes on although its context has ended: warn
)

// Observation is one outcome. Fields that an outcome does not have are zero.
type Observation struct {
	Kind   Kind
	Key    Key // as given; it may hold personal data
	Fence  int64
	Holder string    // of the lock that is in the way, or that was taken over
	Until  time.Time // end of the lease
	// Duration is how long the outcome took: of the requests, or of the whole wait.
	Duration time.Duration
	Held     time.Duration // from acquired to released
	Requests int           // sent to the store for this outcome
	Recorded bool          // released with the event recorded as completed
	// Forgotten is how many events are not remembered any more, although they have not
	// expired: see [Options.RememberAtLeast].
	Forgotten int
	Err       error
}

func (a *acquisition) observe(kind Kind, err error) {
	if a.locker.silent(a.ctx, kind) {
		return
	}
	o := Observation{
		Kind: kind, Key: a.key, Fence: a.row.Fence, Until: a.row.Until,
		Duration: a.decided.Sub(a.began), Requests: a.asking.requests, Err: err,
	}
	switch kind {
	case TookOver:
		o.Holder = a.row.Previous
	case HeldByOther:
		o.Holder = a.row.Holder
	case Waited:
		o.Duration, o.Requests, o.Err = a.waited, 0, nil
	}
	a.locker.Report(a.ctx, o)
}

func (l *Lock) observeSettled(kind Kind, s *settlement, err error) {
	if l.locker.silent(l.ctx, kind) {
		return
	}
	now := time.Now()
	o := Observation{
		Kind: kind, Key: l.key, Fence: l.row.Fence, Until: time.UnixMicro(l.until.Load()), Duration: now.Sub(s.began),
		Held: now.Sub(l.decided), Requests: s.requests, Recorded: s.records && err == nil, Err: err,
	}
	if kind == Forgotten {
		o.Forgotten = s.forgotten
	}
	l.locker.Report(l.ctx, o)
}

func kindOf(err error) Kind {
	var done *DoneError
	switch {
	case errors.As(err, &done) && done.Stale:
		return Overtaken
	case errors.Is(err, ErrDone):
		return AlreadyDone
	case errors.Is(err, ErrHeld):
		return HeldByOther
	case errors.Is(err, ErrLost):
		return Lost
	case errors.As(err, new(*StoreError)):
		return StoreFailed
	}
	return Refused
}

// silent: nobody wants to know, so nothing needs to be measured.
func (l *Locker) silent(ctx context.Context, kind Kind) bool {
	return l.opts.Observe == nil && !l.opts.Logger.Enabled(ctx, kind.level())
}

// Report gives o to Options.Observe and logs it. It is for layers above the engine
// that have outcomes of their own.
func (l *Locker) Report(ctx context.Context, o Observation) {
	if l.opts.Observe != nil {
		l.opts.Observe(ctx, o)
	}
	level := o.Kind.level()
	if !l.opts.Logger.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 8)
	attrs = append(attrs, slog.String("key", o.Key.Digest()), slog.Duration("duration", o.Duration), slog.Int("requests", o.Requests))
	if l.opts.LogKeys {
		attrs = append(attrs, slog.String("name", o.Key.Name), slog.String("event", o.Key.Event))
	}
	if o.Fence != 0 {
		attrs = append(attrs, slog.Int64("fence", o.Fence))
	}
	if o.Forgotten != 0 {
		attrs = append(attrs, slog.Int("forgotten", o.Forgotten))
	}
	if o.Holder != "" {
		attrs = append(attrs, slog.String("holder", o.Holder), slog.Time("until", o.Until))
	}
	if o.Err != nil {
		attrs = append(attrs, slog.String("error", o.Err.Error()))
	}
	l.opts.Logger.LogAttrs(ctx, level, "lambdalock: "+string(o.Kind), attrs...)
}

func (k Kind) level() slog.Level {
	switch k {
	case Acquired, Waited, Renewed, Released:
		return slog.LevelDebug
	case HeldByOther, AlreadyDone, Overtaken, Forgotten:
		return slog.LevelInfo
	case RecordFailed, StoreFailed, Refused, Unlocked, WorkFailed:
		return slog.LevelError
	}
	return slog.LevelWarn
}
