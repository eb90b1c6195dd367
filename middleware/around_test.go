package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// next is what a function given to Around calls.
type next = func(context.Context) error

type spanKey struct{}

// spanLog writes the span of the context before each line.
type spanLog struct {
	slog.Handler
	write func(ctx context.Context, line string)
}

func (l spanLog) Enabled(context.Context, slog.Level) bool { return true }

func (l spanLog) Handle(ctx context.Context, r slog.Record) error {
	l.write(ctx, r.Message)
	return nil
}

// TestAroundSurroundsLockAndHandler shows that the context that is passed to
// next reaches handler, observer and log lines, and that next returns when the
// lock is released.
func TestAroundSurroundsLockAndHandler(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		var seen []string
		see := func(ctx context.Context, what string) {
			span, _ := ctx.Value(spanKey{}).(string)
			seen = append(seen, strings.TrimSpace(span+" "+what))
		}
		f := newFixture()
		h := middleware.EachSQSBody(lockPerOrder, func(ctx context.Context, o order) error {
			see(ctx, "handler "+o.ID)
			if _, ok := lock.FromContext(ctx); !ok {
				t.Error("no lease")
			}
			if o.Item == 13 {
				return errRecord
			}
			return nil
		}, f.options(
			middleware.Concurrency(1),
			middleware.Observe(func(ctx context.Context, o lock.Observation) { see(ctx, string(o.Outcome)) }),
			middleware.Logger(slog.New(spanLog{slog.DiscardHandler, see})),
			middleware.Around(func(ctx context.Context, m events.SQSMessage, next next) error {
				see(ctx, "begin "+m.MessageId)
				if mine, ok := middleware.RecordFromContext[events.SQSMessage](ctx); !ok || mine.MessageId != m.MessageId {
					t.Errorf("the record in the context is %v, %v", mine, ok)
				}
				err := next(context.WithValue(ctx, spanKey{}, "span "+m.MessageId))
				see(ctx, fmt.Sprint("end ", err))
				return err
			}),
		)...)
		r, err := h(ctx, queueBatch(`{"id":"a"}`, `{"id":"a"}`, `{"id":"b","item":13}`, "{"))
		wantReturned(t, r, err, "m2", "m3")
		malformed := "lambdalock: no key: Records[3].body is not JSON of the expected shape: as middleware_test.order: unexpected end of JSON input"
		want := []string{
			"begin m0", "span m0 acquired", "span m0 lambdalock: acquired", "span m0 handler a", "span m0 released", "span m0 lambdalock: released", "end <nil>",
			"begin m2", "span m2 acquired", "span m2 lambdalock: acquired", "span m2 handler b", "span m2 handler_failed", "span m2 lambdalock: handler_failed",
			"span m2 released", "span m2 lambdalock: released", "end the record is bad",
			"begin m3", "span m3 refused", "span m3 lambdalock: refused", "end " + malformed,
			"begin m1", "span m1 already_completed", "span m1 lambdalock: already_completed", "end <nil>",
		}
		if !slices.Equal(seen, want) {
			t.Errorf("seen\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
		}
	})
}

// several is an error that cannot be compared.
type several []string

func (s several) Error() string { return strings.Join(s, ", ") }

// aroundCase is what the function given to Around does with the record "b" of
// "a", "b" and "c", whose handler ends as does says.
type aroundCase struct {
	around  func(ctx context.Context, next next) error
	does    string
	ran     bool
	failure string // "" if the record succeeds
	failed  int    // how many reports of handler_failed
	again   bool   // the handler runs when the record comes again
}

var aroundCases = map[string]aroundCase{
	"passes on":             {around: func(ctx context.Context, next next) error { return next(ctx) }, ran: true},
	"passes on an error":    {around: func(ctx context.Context, next next) error { return next(ctx) }, does: "fails", ran: true, failure: "the record is bad", failed: 1, again: true},
	"does not call next":    {around: func(context.Context, next) error { return nil }, failure: "without calling next", failed: 1, again: true},
	"refuses":               {around: func(context.Context, next) error { return several{"not", "now"} }, failure: "not, now", failed: 1, again: true},
	"hides an error":        {around: func(ctx context.Context, next next) error { _ = next(ctx); return nil }, does: "fails", ran: true, failure: "the record is bad", failed: 1, again: true},
	"wraps an error":        {around: func(ctx context.Context, next next) error { return fmt.Errorf("traced: %w", next(ctx)) }, does: "fails", ran: true, failure: "traced: the record is bad", failed: 1, again: true},
	"fails after success":   {around: func(ctx context.Context, next next) error { return errors.Join(next(ctx), errors.New("no flush")) }, ran: true, failure: "no flush", failed: 1},
	"calls next twice":      {around: func(ctx context.Context, next next) error { return errors.Join(next(ctx), next(ctx)) }, ran: true, failure: "a second time", failed: 1},
	"hides the second call": {around: func(ctx context.Context, next next) error { _ = next(ctx); _ = next(ctx); return nil }, ran: true, failure: "a second time", failed: 1},
	"calls next meanwhile": {around: func(ctx context.Context, next next) error {
		go func() { _ = next(ctx) }()
		time.Sleep(time.Microsecond)
		return next(ctx)
	}, ran: true, failure: "a second time", failed: 1},
	"retries a failure":      {around: func(ctx context.Context, next next) error { _ = next(ctx); return next(ctx) }, does: "fails", ran: true, failure: "a second time", failed: 1, again: true},
	"hides both calls":       {around: func(ctx context.Context, next next) error { _ = next(ctx); _ = next(ctx); return nil }, does: "fails", ran: true, failure: "the record is bad", failed: 1, again: true},
	"another context":        {around: func(_ context.Context, next next) error { return next(context.Background()) }, failure: "does not derive", failed: 1, again: true},
	"hides another context":  {around: func(_ context.Context, next next) error { _ = next(context.Background()); return nil }, failure: "does not derive", failed: 1, again: true},
	"nil context":            {around: func(_ context.Context, next next) error { return next(nil) }, failure: "does not derive", failed: 1, again: true},
	"panics":                 {around: func(context.Context, next) error { panic("around") }, failure: "panic: around", failed: 1, again: true},
	"panics afterwards":      {around: func(ctx context.Context, next next) error { _ = next(ctx); panic("around") }, ran: true, failure: "panic: around", failed: 1},
	"handler panics":         {around: func(ctx context.Context, next next) error { return next(ctx) }, does: "panics", ran: true, failure: "panic: the record is bad", failed: 1, again: true},
	"exits":                  {around: func(context.Context, next) error { runtime.Goexit(); return nil }, failure: "runtime.Goexit", failed: 1, again: true},
	"exits afterwards":       {around: func(ctx context.Context, next next) error { _ = next(ctx); runtime.Goexit(); return nil }, ran: true, failure: "runtime.Goexit", failed: 1},
	"handler exits":          {around: func(ctx context.Context, next next) error { return next(ctx) }, does: "exits", ran: true, failure: "runtime.Goexit", failed: 1, again: true},
	"hides a panic":          {around: recovering(nil), does: "panics", ran: true, failure: "recovered that", failed: 1, again: true},
	"turns a panic into err": {around: recovering(errors.New("sorry")), does: "panics", ran: true, failure: "sorry", failed: 1, again: true},
	"another goroutine": {around: func(ctx context.Context, next next) error {
		done := make(chan error)
		go func() { done <- next(ctx) }()
		return <-done
	}, ran: true},
	"does not wait": {around: func(ctx context.Context, next next) error {
		go func() { time.Sleep(5 * time.Millisecond); _ = next(ctx) }() // ends after the other records
		time.Sleep(6 * time.Millisecond)
		return nil
	}, does: "fails", ran: true, failure: "the record is bad", failed: 1, again: true},
	"panics meanwhile": {around: func(ctx context.Context, next next) error {
		go func() { time.Sleep(5 * time.Millisecond); _ = next(ctx) }()
		time.Sleep(6 * time.Millisecond)
		panic("around")
	}, ran: true, failure: "panic: around", failed: 1},
	"calls next too late": {around: func(ctx context.Context, next next) error {
		go func() { time.Sleep(time.Microsecond); _ = next(ctx) }() // the other records still run
		return nil
	}, failure: "without calling next", failed: 1, again: true},
}

func recovering(err error) func(context.Context, next) error {
	return func(ctx context.Context, next next) (result error) {
		defer func() {
			if recover() != nil {
				result = err
			}
		}()
		return next(ctx)
	}
}

// TestAround shows that a record succeeds only if its handler did, whatever the
// function given to Around does, that nothing else fails with it, and that its
// lock is released.
func TestAround(t *testing.T) { // F18, F36
	t.Parallel()
	for name, c := range aroundCases {
		t.Run(name, func(t *testing.T) {
			underDeadline(t, func(t *testing.T, ctx context.Context) { c.check(t, ctx) })
		})
	}
}

func (c *aroundCase) check(t *testing.T, ctx context.Context) {
	f, runs := newFixture(), &runLog{}
	does := map[string]string{"b": c.does}
	behaves := true
	around := middleware.Around(func(ctx context.Context, r events.SNSEventRecord, next next) error {
		if r.SNS.MessageID == "m1" && behaves {
			return c.around(ctx, next)
		}
		return next(ctx)
	})
	h := middleware.EachSNSBody(lockPerOrder, func(ctx context.Context, o order) error { return runs.act(ctx, o.ID, does[o.ID]) }, f.options(around)...)
	e := snsBatch(`{"id":"a"}`, `{"id":"b"}`, `{"id":"c"}`)
	err := h(ctx, e)
	if runs.running != 0 {
		t.Errorf("%d handlers outlive the invocation", runs.running)
	}
	time.Sleep(2 * time.Second) // for what comes too late
	var batch *middleware.BatchError
	switch {
	case c.failure == "":
		if err != nil {
			t.Error(err)
		}
	case !errors.As(err, &batch) || len(batch.Failed) != 1 || batch.Failed[0].Record != "Records[1]" || !strings.Contains(err.Error(), c.failure):
		t.Errorf("%v, want Records[1] to fail with %q", err, c.failure)
	}
	if slices.Contains(runs.began, "b") != c.ran || len(runs.began) != 2+map[bool]int{true: 1}[c.ran] || f.count(middleware.OutcomeHandlerFailed) != c.failed || f.count(lock.OutcomeRefused) > 0 {
		t.Errorf("ran %q, want %d reports of a failure; observed %q", runs.began, c.failed, f.outcomes())
	}
	f.forget()
	runs.began, does["b"], behaves = nil, "", false
	if err := h(ctx, e); err != nil || slices.Contains(runs.began, "b") != c.again || f.count(lock.OutcomeHeld) != 0 {
		t.Errorf("delivered again: %v, ran %q, observed %q", err, runs.began, f.outcomes())
	}
}

// TestAroundMixesUpContexts shows that a record fails without being handled if
// it would get the context of another one.
func TestAroundMixesUpContexts(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		var first context.Context
		runs := &runLog{}
		h := middleware.EachSQSBody(lockPerOrder, func(ctx context.Context, o order) error { return runs.act(ctx, o.ID, "") }, newFixture().options(
			middleware.Concurrency(1),
			middleware.Around(func(ctx context.Context, _ events.SQSMessage, next next) error {
				if first == nil {
					first = ctx
				}
				return next(first)
			}),
		)...)
		r, err := h(ctx, queueBatch(`{"id":"a"}`, `{"id":"b"}`))
		wantReturned(t, r, err, "m1")
		if !slices.Equal(runs.began, []string{"a"}) {
			t.Errorf("ran %q", runs.began)
		}
	})
}

// TestAroundUnwraps shows that what the handler returned stays in the chain.
func TestAroundUnwraps(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		pass := func(ctx context.Context, _ events.SQSMessage, next next) error { return next(ctx) }
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error { return errRecord }, newFixture().options(middleware.Around(pass))...)
		if _, err := h(ctx, sqsBatch(message("a", ""))); !errors.Is(err, errRecord) {
			t.Errorf("%v", err)
		}
	})
}

// TestAroundOnlyWhatBegins shows that the function given to Around is not
// called for a record that is not begun, and that the last one given counts.
func TestAroundOnlyWhatBegins(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		var mu sync.Mutex
		var around []string
		h := middleware.EachSQSMessage(keyfuncs.SQSFIFOMessage, runs.sqs, f.options(
			middleware.Around(func(context.Context, events.KinesisEventRecord, next) error { return nil }),
			middleware.Around(func(ctx context.Context, m events.SQSMessage, next next) error {
				mu.Lock()
				around = append(around, m.MessageId)
				mu.Unlock()
				return next(ctx)
			}),
		)...)
		r, err := h(ctx, sqsBatch(inGroup("x", message("x1", "fails")), inGroup("x", message("x2", "")), inGroup("y", message("y1", ""))))
		wantReturned(t, r, err, "x1", "x2")
		slices.Sort(around)
		if !slices.Equal(around, []string{"x1", "y1"}) {
			t.Errorf("around %q", around)
		}
	})
}

// TestAroundAgain shows that the function given to Around is called again for a
// record whose claim was throttled, with a context that has nothing from the
// first call.
func TestAroundAgain(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, calls := newFixture(), 0
		f.faulty.Plan(fault.Acquire, fault.Throttle)
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, handles[events.SQSMessage], f.options(
			middleware.Around(func(ctx context.Context, _ events.SQSMessage, next next) error {
				calls++
				if span := ctx.Value(spanKey{}); span != nil || ctx.Err() != nil {
					t.Errorf("call %d is in the span %v: %v", calls, span, ctx.Err())
				}
				ctx, cancel := context.WithCancel(context.WithValue(ctx, spanKey{}, calls))
				defer cancel()
				return next(ctx)
			}),
		)...)
		r, err := h(ctx, sqsBatch(message("a", "")))
		wantReturned(t, r, err)
		if calls != 2 {
			t.Errorf("%d calls, want 2", calls)
		}
	})
}

// TestAroundGivesUpAgain shows that the function given to Around decides anew
// when it is called again: what the first call met is over.
func TestAroundGivesUpAgain(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, calls := newFixture(), 0
		f.faulty.Plan(fault.Acquire, fault.Throttle)
		var told error
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, handles[events.SQSMessage], f.options(
			middleware.Around(func(ctx context.Context, _ events.SQSMessage, next next) error {
				if calls++; calls == 2 {
					return middleware.Permanent(errRecord)
				}
				return next(ctx)
			}),
			middleware.OnFailed(func(_ context.Context, fs failed) { told = fs[0].Err }),
		)...)
		_, _ = h(ctx, sqsBatch(message("a", "")))
		if !errors.As(told, new(*middleware.PermanentError)) {
			t.Errorf("the record failed with %v, after %d calls", told, calls)
		}
	})
}

// TestAroundMayHurry shows that an earlier deadline that the function given to
// Around sets ends the handler's context.
func TestAroundMayHurry(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(ctx context.Context, _ events.SQSMessage) error {
			<-ctx.Done()
			return ctx.Err()
		}, newFixture().options(middleware.Around(func(ctx context.Context, _ events.SQSMessage, next next) error {
			ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
			defer cancel()
			return next(ctx)
		}))...)
		began := time.Now()
		_, err := h(ctx, sqsBatch(message("a", "")))
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > 3*time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// TestWrongAround shows that Around for other records, or where there are none,
// panics when the handler is wrapped.
func TestWrongAround(t *testing.T) {
	t.Parallel()
	opts := newFixture().options
	around := middleware.Around(func(ctx context.Context, _ events.SQSMessage, next next) error { return next(ctx) })
	body := middleware.Around(func(ctx context.Context, _ order, next next) error { return next(ctx) })
	for name, c := range map[string]struct {
		use    func()
		within string
	}{
		"nil": {func() { middleware.Around[order](nil) }, "Around(nil)"},
		"other records": {func() {
			middleware.EachSNSRecord(keyfuncs.SNSRecord, func(context.Context, events.SNSEventRecord) error { return nil }, opts(around)...)
		}, "for events.SQSMessage, but each record is of type events.SNSEventRecord"},
		"the body": {func() {
			middleware.EachSQSBody(lockPerOrder, func(context.Context, order) error { return nil }, opts(body)...)
		}, "for middleware_test.order, but each record is of type events.SQSMessage"},
		"whole events": {func() {
			middleware.WithLock(byOrder, func(context.Context, order) error { return nil }, opts(around)...)
		}, "Around and OnFailed are for handlers of single records"},
	} {
		t.Run(name, func(t *testing.T) { wantPanic(t, c.use, c.within) })
	}
}
