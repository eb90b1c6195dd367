package middleware

import (
	"context"
	"log/slog"

	"github.com/lambdalock/lambdalock/internal/event/printable"
	"github.com/lambdalock/lambdalock/lock"
)

// The outcomes of the wrapper, besides those of package lock. Whenever one
// occurs, [Observe] is called, and one line of the level given here is logged.
const (
	OutcomeUnlocked      lock.Outcome = "unlocked"       // the handler runs without a lock, because of FailOpen: error
	OutcomeNoLock        lock.Outcome = "no_lock"        // the handler runs without a lock, because of keyfuncs.ErrNoLock, or for OPTIONS without a key: debug
	OutcomeIgnored       lock.Outcome = "ignored"        // the event has nothing to work on: warn
	OutcomeHandlerFailed lock.Outcome = "handler_failed" // the handler of one record of a batch, or what [Around] or [OnFailed] calls, returned an error or panicked: error
	OutcomeNotBegun      lock.Outcome = "not_begun"      // records of a batch are returned without being handled: warn
	OutcomeOverdue       lock.Outcome = "overdue"        // the handler of one record goes on after its context has ended: warn
)

// level returns the level of an outcome that the wrapper reports.
func level(o lock.Outcome) slog.Level {
	switch o {
	case OutcomeUnlocked, OutcomeHandlerFailed, lock.OutcomeRefused:
		return slog.LevelError
	case OutcomeNoLock:
		return slog.LevelDebug
	case lock.OutcomeCoalesced: // as when package lock reports it
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// recordOrigin is the key of a function in the context that returns the source
// of the record at hand, and its id there, or "" for what is not known.
type recordOrigin struct{}

func originIn(ctx context.Context) (source, id string) {
	if origin, ok := ctx.Value(recordOrigin{}).(func() (source, id string)); ok {
		return origin()
	}
	return "", ""
}

// report gives o to the observer and logs it, as package lock does with its own
// outcomes.
func (w *wrapper) report(ctx context.Context, o lock.Observation) {
	w.reportAt(ctx, level(o.Outcome), o)
}

// reportAt is report with another level of the line.
func (w *wrapper) reportAt(ctx context.Context, at slog.Level, o lock.Observation) {
	o.Namespace, o.Store = w.engine.Namespace, w.storeName
	if w.engine.Observe != nil {
		w.engine.Observe(ctx, o)
	}
	attrs := o.LogValue().Group()
	if o.Key.Name == "" {
		source, id := originIn(ctx)
		if source != "" {
			attrs = append(attrs, slog.String("source", printable.Text(source)))
		}
		if id != "" {
			attrs = append(attrs, slog.String("record", printable.Text(id)))
		}
	}
	if w.engine.LogKeys {
		attrs = append(attrs, slog.String("name", printable.Text(o.Key.Name)), slog.String("event", printable.Text(o.Key.Event)))
	}
	w.engine.Logger.LogAttrs(ctx, at, "lambdalock: "+string(o.Outcome), attrs...)
}
