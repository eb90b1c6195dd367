package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// callbackCase says how an invocation comes to one outcome. The zero case has
// the name "n", the id as its Event, and a handler that returns immediately.
type callbackCase struct {
	opts   []middleware.Option
	before func(t *testing.T, f *fixture) // what others did with the name
	store  func(f *fixture)               // what goes wrong with the store
	key    func(id string) (lock.Key, error)
	work   func(t *testing.T, f *fixture) error
	result any // of a handler of one event

	staysHeld   bool // to the end of the lease, as without a panic
	eventOnly   bool // handlers of records do not come to the outcome
	recordsOnly bool // handlers of one event do not come to the outcome
}

var callbackCases = map[lock.Outcome]callbackCase{
	lock.OutcomeAcquired: {},
	lock.OutcomeReleased: {},
	lock.OutcomeTakenOver: {before: func(t *testing.T, f *fixture) {
		f.acquireElsewhere(t, lock.Key{Name: "n"})
		time.Sleep(time.Minute)
	}},
	lock.OutcomeHeld: {staysHeld: true, before: func(t *testing.T, f *fixture) { f.acquireElsewhere(t, lock.Key{Name: "n"}) }},
	lock.OutcomeAlreadyCompleted: {before: func(t *testing.T, f *fixture) {
		expect.Must(t, f.acquireElsewhere(t, lock.Key{Name: "n", Event: "1"}).Complete())
	}},
	lock.OutcomeStale: {
		before: func(t *testing.T, f *fixture) {
			expect.Must(t, f.acquireElsewhere(t, lock.Key{Name: "n", Order: "9"}).Complete())
		},
		key: func(string) (lock.Key, error) { return lock.Key{Name: "n", Order: "1"}, nil },
	},
	lock.OutcomeRenewed: {opts: []middleware.Option{middleware.Heartbeat(10 * time.Second)}, work: func(*testing.T, *fixture) error {
		time.Sleep(9 * time.Second)
		return nil
	}},
	lock.OutcomeLost: {
		opts: []middleware.Option{fixedLease(5 * time.Second)}, staysHeld: true,
		work: func(t *testing.T, f *fixture) error {
			time.Sleep(6 * time.Second)
			f.acquireElsewhere(t, lock.Key{Name: "n"})
			return nil
		},
	},
	lock.OutcomeCompleteFailed: {staysHeld: true, store: func(f *fixture) { f.faulty.Always(fault.Release, fault.DropBefore) }},
	lock.OutcomeResultDropped:  {eventOnly: true, opts: []middleware.Option{middleware.OnCompleted(middleware.Replay)}, result: func() {}},
	lock.OutcomeStoreFailed:    {store: func(f *fixture) { f.faulty.Always(fault.Acquire, fault.Deny) }},
	lock.OutcomeRefused:        {key: func(string) (lock.Key, error) { return lock.Key{}, errRecord }},
	middleware.OutcomeUnlocked: {
		opts:  []middleware.Option{middleware.FailOpen()},
		store: func(f *fixture) { f.faulty.Always(fault.Acquire, fault.DropBefore) },
	},
	middleware.OutcomeNoLock:        {key: func(string) (lock.Key, error) { return lock.Key{}, keyfuncs.ErrNoLock }},
	middleware.OutcomeIgnored:       {key: func(string) (lock.Key, error) { return lock.Key{}, keyfuncs.ErrIgnore }},
	middleware.OutcomeHandlerFailed: {recordsOnly: true, work: func(*testing.T, *fixture) error { return errRecord }},
	middleware.OutcomeNotBegun: {recordsOnly: true, opts: []middleware.Option{middleware.Concurrency(1)}, work: func(*testing.T, *fixture) error {
		time.Sleep(30 * time.Second)
		return nil
	}},
	middleware.OutcomeOverdue: {recordsOnly: true, work: func(*testing.T, *fixture) error { time.Sleep(time.Minute); return nil }},
}

// callbacks returns one callback of each kind, which panics when it hears of
// outcome.
func callbacks(outcome lock.Outcome, heard *atomic.Int32) map[string]middleware.Option {
	return map[string]middleware.Option{
		"observer": middleware.Observe(func(_ context.Context, o lock.Observation) {
			if o.Outcome == outcome {
				heard.Add(1)
				panic("callback")
			}
		}),
		"log handler": middleware.Logger(slog.New(panickingLog{outcome: outcome, heard: heard})),
	}
}

type panickingLog struct {
	outcome lock.Outcome
	heard   *atomic.Int32
}

func (panickingLog) Enabled(context.Context, slog.Level) bool { return true }
func (l panickingLog) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l panickingLog) WithGroup(string) slog.Handler          { return l }
func (l panickingLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "lambdalock: "+string(l.outcome) {
		l.heard.Add(1)
		panic("callback")
	}
	return nil
}

// keyOf is the case's key function.
func (c *callbackCase) keyOf(id string) (lock.Key, error) {
	if c.key != nil {
		return c.key(id)
	}
	return lock.Key{Name: "n", Event: id}, nil
}

func (c *callbackCase) run(t *testing.T, f *fixture) error {
	if c.work == nil {
		return nil
	}
	return c.work(t, f)
}

// TestPanicInEveryCallback shows that a callback that panics leaves no lease
// and no goroutine behind, and that the panic reaches the caller, or fails the
// record.
func TestPanicInEveryCallback(t *testing.T) { // F48
	for outcome, c := range callbackCases {
		var heard atomic.Int32
		for name, callback := range callbacks(outcome, &heard) {
			t.Run(fmt.Sprintf("%s/%s", outcome, name), func(t *testing.T) {
				if !c.recordsOnly {
					t.Run("one event", func(t *testing.T) { c.oneEvent(t, callback, &heard) })
				}
				if !c.eventOnly {
					t.Run("three records", func(t *testing.T) { c.threeRecords(t, callback, &heard) })
				}
			})
		}
	}
}

func (c *callbackCase) prepare(t *testing.T, heard *atomic.Int32) *fixture {
	f := newFixture()
	if c.before != nil {
		c.before(t, f)
	}
	if c.store != nil {
		c.store(f)
	}
	heard.Store(0)
	return f
}

func (c *callbackCase) oneEvent(t *testing.T, callback middleware.Option, heard *atomic.Int32) {
	synctest.Test(t, func(t *testing.T) {
		f := c.prepare(t, heard)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		h := middleware.WithLock(func(_ context.Context, o order) (lock.Key, error) { return c.keyOf(o.ID) },
			func(context.Context, order) (any, error) { return c.result, c.run(t, f) }, f.options(append(c.opts, callback)...)...)
		func() {
			defer func() {
				if p := recover(); p != "callback" {
					t.Errorf("the caller got %v, want the callback's panic", p)
				}
			}()
			_, _ = h(ctx, order{ID: "1"})
		}()
		c.after(t, f, heard)
	})
}

// threeRecords delivers three records, of which at least one comes to the
// outcome.
func (c *callbackCase) threeRecords(t *testing.T, callback middleware.Option, heard *atomic.Int32) {
	synctest.Test(t, func(t *testing.T) {
		f := c.prepare(t, heard)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		h := c.wrapRecords(t, f, callback)
		var raised any
		var r events.SQSEventResponse
		var err error
		func() {
			defer func() { raised = recover() }()
			r, err = h(ctx, sqsBatch(message("1", ""), message("2", ""), message("3", "")))
		}()
		var panicked *middleware.PanicError
		switch {
		case raised != nil && raised != "callback":
			t.Errorf("the caller got %v", raised)
		case raised == nil && len(r.BatchItemFailures) == 0:
			t.Errorf("returned %v, %v: the panic is lost", r, err)
		case err != nil && (!errors.As(err, &panicked) || panicked.Value != "callback" || !strings.Contains(string(panicked.Stack), "callback_test.go") && !strings.Contains(string(panicked.Stack), "heartbeat.go")):
			t.Errorf("%v does not tell of the panic", err)
		}
		c.after(t, f, heard)
	})
}

func (c *callbackCase) wrapRecords(t *testing.T, f *fixture, callback middleware.Option) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	return middleware.EachSQSMessage(func(_ context.Context, m events.SQSMessage) (lock.Key, error) { return c.keyOf(m.MessageId) },
		func(context.Context, events.SQSMessage) error { return c.run(t, f) }, f.options(append(c.opts, callback)...)...)
}

// after checks that the name is released, immediately or when the lease has
// ended, and that nobody renews it.
func (c *callbackCase) after(t *testing.T, f *fixture, heard *atomic.Int32) {
	t.Helper()
	if heard.Load() == 0 {
		t.Fatal("the callback was not called: this test sees nothing")
	}
	f.faulty.Always(fault.Release, fault.None)
	f.faulty.Always(fault.Acquire, fault.None)
	if c.staysHeld {
		time.Sleep(time.Minute)
	}
	renewals := f.faulty.Requests(fault.Renew)
	time.Sleep(time.Millisecond)
	plain := middleware.WithLock(func(_ context.Context, o order) (lock.Key, error) { return lock.Key{Name: "n", Event: o.ID}, nil },
		func(context.Context, order) error { return nil }, f.options()...)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := plain(ctx, order{ID: "after"}); err != nil {
		t.Errorf("the name is not released: %v", err)
	}
	time.Sleep(time.Hour)
	if now := f.faulty.Requests(fault.Renew); now != renewals {
		t.Errorf("%d renewals by nobody", now-renewals)
	}
}

// TestCallbackThatAlwaysPanics shows that a callback may panic again while its
// first panic is reported.
func TestCallbackThatAlwaysPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		always := middleware.Observe(func(context.Context, lock.Observation) { panic("callback") })
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, new(runLog).sqs, newFixture().options(always)...)
		var batch *middleware.BatchError
		_, err := h(ctx, sqsBatch(message("a", ""), message("b", "panics"), message("c", "fails")))
		if !errors.As(err, &batch) || len(batch.Failed) != 3 {
			t.Fatalf("%v, want each record to fail", err)
		}
		for _, f := range batch.Failed {
			if !errors.As(f, new(*middleware.PanicError)) {
				t.Errorf("%v does not tell of the panic", f)
			}
		}
	})
}

// TestCallbackThatEndsItsGoroutine shows that the other records are handled and
// the batch ends if a callback ends its goroutine, as t.FailNow does.
func TestCallbackThatEndsItsGoroutine(t *testing.T) {
	for _, outcome := range []lock.Outcome{lock.OutcomeReleased, lock.OutcomeRefused, middleware.OutcomeHandlerFailed, middleware.OutcomeOverdue, lock.OutcomeAlreadyCompleted, lock.OutcomeStoreFailed} {
		t.Run(string(outcome), func(t *testing.T) {
			c := callbackCases[outcome]
			synctest.Test(t, func(t *testing.T) {
				var heard atomic.Int32
				f := c.prepare(t, &heard)
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				exits := middleware.Observe(func(_ context.Context, o lock.Observation) {
					if o.Outcome == outcome {
						heard.Add(1)
						runtime.Goexit()
					}
				})
				r, err := c.wrapRecords(t, f, exits)(ctx, sqsBatch(message("1", ""), message("2", ""), message("3", "")))
				if outcome != middleware.OutcomeOverdue && len(r.BatchItemFailures) == 0 {
					t.Errorf("returned %v, %v: the record whose callback ended counts as completed", r, err)
				}
				c.after(t, f, &heard)
			})
		})
	}
}

// TestKeyFunctionThatPanics shows that the panic reaches the caller before any
// lock is taken.
func TestKeyFunctionThatPanics(t *testing.T) {
	t.Parallel()
	f := newFixture()
	h := middleware.WithLock(func(context.Context, order) (lock.Key, error) { panic(errRecord) },
		func(context.Context, order) error { t.Error("ran"); return nil }, f.options()...)
	func() {
		defer func() {
			if p := recover(); p != errRecord {
				t.Errorf("the caller got %v", p)
			}
		}()
		_ = h(t.Context(), order{ID: "1"})
	}()
	f.want(t)
	if n := f.faulty.Requests(fault.Acquire); n != 0 {
		t.Errorf("%d requests", n)
	}
}
