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

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/middleware"
)

// callbackCase is how an invocation comes to one outcome. What is zero is as usual: the
// name "n", the id as its Event, a handler that returns at once.
type callbackCase struct {
	opts   []middleware.Option
	before func(t *testing.T, q *quiet) // what others did with the name
	store  func(q *quiet)               // what goes wrong with the store
	key    func(id string) (lock.Key, error)
	work   func(t *testing.T, q *quiet) error
	result any  // a handler's without records
	stays  bool // the name stays owned to the end of its lease, as without a panic
	single bool // for handlers without records only
	batch  bool // for handlers of records only
}

// elsewhere takes the name as another function would, for a lease of 5 s.
func elsewhere(t *testing.T, q *quiet, k lock.Key) *lock.Lock {
	t.Helper()
	locker, err := lock.New(q.store.Store, &lock.Options{Lease: lock.FixedLease(5 * time.Second), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := locker.Acquire(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var callbackCases = map[lock.Outcome]callbackCase{
	lock.OutcomeAcquired: {},
	lock.OutcomeReleased: {},
	lock.OutcomeTakenOver: {before: func(t *testing.T, q *quiet) {
		elsewhere(t, q, lock.Key{Name: "n"})
		time.Sleep(time.Minute)
	}},
	lock.OutcomeWaited: {opts: []middleware.Option{middleware.OnHeld(middleware.Wait(20 * time.Second))}, before: func(t *testing.T, q *quiet) {
		elsewhere(t, q, lock.Key{Name: "n"})
	}},
	lock.OutcomeHeld: {stays: true, before: func(t *testing.T, q *quiet) { elsewhere(t, q, lock.Key{Name: "n"}) }},
	lock.OutcomeAlreadyCompleted: {before: func(t *testing.T, q *quiet) {
		if err := elsewhere(t, q, lock.Key{Name: "n", Event: "1"}).Complete(nil); err != nil {
			t.Fatal(err)
		}
	}},
	lock.OutcomeStale: {
		before: func(t *testing.T, q *quiet) {
			if err := elsewhere(t, q, lock.Key{Name: "n", Order: "9"}).Complete(nil); err != nil {
				t.Fatal(err)
			}
		},
		key: func(string) (lock.Key, error) { return lock.Key{Name: "n", Order: "1"}, nil },
	},
	lock.OutcomeRenewed: {opts: []middleware.Option{middleware.Heartbeat(10 * time.Second)}, work: func(*testing.T, *quiet) error {
		time.Sleep(9 * time.Second)
		return nil
	}},
	lock.OutcomeLost: {
		opts: []middleware.Option{middleware.FixedLease(5 * time.Second)}, stays: true,
		work: func(t *testing.T, q *quiet) error {
			time.Sleep(6 * time.Second)
			elsewhere(t, q, lock.Key{Name: "n"})
			return nil
		},
	},
	lock.OutcomeCompleteFailed: {stays: true, store: func(q *quiet) { q.store.Always(locktest.Release, locktest.Drop) }},
	lock.OutcomeResultDropped:  {single: true, opts: []middleware.Option{middleware.OnCompleted(middleware.Replay)}, result: func() {}},
	lock.OutcomeStoreFailed:    {store: func(q *quiet) { q.store.Always(locktest.Acquire, locktest.Deny) }},
	lock.OutcomeRefused:        {key: func(string) (lock.Key, error) { return lock.Key{}, errRecord }},
	middleware.OutcomeUnlocked: {
		opts:  []middleware.Option{middleware.FailOpen()},
		store: func(q *quiet) { q.store.Always(locktest.Acquire, locktest.Drop) },
	},
	middleware.OutcomeIgnored:       {key: func(string) (lock.Key, error) { return lock.Key{}, keyfuncs.ErrIgnore }},
	middleware.OutcomeHandlerFailed: {batch: true, work: func(*testing.T, *quiet) error { return errRecord }},
	middleware.OutcomeNotBegun: {batch: true, opts: []middleware.Option{middleware.Concurrency(1)}, work: func(*testing.T, *quiet) error {
		time.Sleep(30 * time.Second)
		return nil
	}},
	middleware.OutcomeOverdue: {batch: true, work: func(*testing.T, *quiet) error { time.Sleep(time.Minute); return nil }},
}

// callbacks are the ways in which an outcome is told: each panics when it hears of kind.
func callbacks(kind lock.Outcome, heard *atomic.Int32) map[string]middleware.Option {
	return map[string]middleware.Option{
		"observer": middleware.Observe(func(_ context.Context, o lock.Observation) {
			if o.Outcome == kind {
				heard.Add(1)
				panic("callback")
			}
		}),
		"log handler": middleware.Logger(slog.New(panickyLog{kind: kind, heard: heard})),
	}
}

type panickyLog struct {
	kind  lock.Outcome
	heard *atomic.Int32
}

func (panickyLog) Enabled(context.Context, slog.Level) bool { return true }
func (l panickyLog) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l panickyLog) WithGroup(string) slog.Handler          { return l }
func (l panickyLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "lambdalock: "+string(l.kind) {
		l.heard.Add(1)
		panic("callback")
	}
	return nil
}

// keyOf is the case's key function for ids.
func (c *callbackCase) keyOf(id string) (lock.Key, error) {
	if c.key != nil {
		return c.key(id)
	}
	return lock.Key{Name: "n", Event: id}, nil
}

func (c *callbackCase) run(t *testing.T, q *quiet) error {
	if c.work == nil {
		return nil
	}
	return c.work(t, q)
}

// TestPanicInEveryCallback: a callback that panics leaves no lease, no goroutine and no
// record without an outcome. The panic reaches the caller, or its record fails with it.
func TestPanicInEveryCallback(t *testing.T) { // F48
	for kind, c := range callbackCases {
		var heard atomic.Int32
		for name, callback := range callbacks(kind, &heard) {
			t.Run(fmt.Sprintf("%s/%s", kind, name), func(t *testing.T) {
				if !c.batch {
					t.Run("single", func(t *testing.T) { c.single1(t, callback, &heard) })
				}
				if !c.single {
					t.Run("batch", func(t *testing.T) { c.batch3(t, callback, &heard) })
				}
			})
		}
	}
}

func (c *callbackCase) prepare(t *testing.T, heard *atomic.Int32) *quiet {
	q := newQuiet()
	if c.before != nil {
		c.before(t, q)
	}
	if c.store != nil {
		c.store(q)
	}
	heard.Store(0)
	return q
}

func (c *callbackCase) single1(t *testing.T, callback middleware.Option, heard *atomic.Int32) {
	synctest.Test(t, func(t *testing.T) {
		q := c.prepare(t, heard)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		h := middleware.WithLock(func(_ context.Context, o order) (lock.Key, error) { return c.keyOf(o.ID) },
			func(context.Context, order) (any, error) { return c.result, c.run(t, q) }, q.with(append(c.opts, callback)...)...)
		func() {
			defer func() {
				if p := recover(); p != "callback" {
					t.Errorf("the caller got %v, want the callback's panic", p)
				}
			}()
			_, _ = h(ctx, order{ID: "1"})
		}()
		c.after(t, q, heard)
	})
}

// batch3 delivers three records, of which at least one meets the outcome.
func (c *callbackCase) batch3(t *testing.T, callback middleware.Option, heard *atomic.Int32) {
	synctest.Test(t, func(t *testing.T) {
		q := c.prepare(t, heard)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		h := middleware.EachSQSMessage(func(_ context.Context, m events.SQSMessage) (lock.Key, error) { return c.keyOf(m.MessageId) },
			func(context.Context, events.SQSMessage) error { return c.run(t, q) }, q.with(append(c.opts, callback)...)...)
		var raised any
		var r events.SQSEventResponse
		var err error
		func() {
			defer func() { raised = recover() }()
			r, err = h(ctx, events.SQSEvent{Records: []events.SQSMessage{message("1", ""), message("2", ""), message("3", "")}})
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
		c.after(t, q, heard)
	})
}

// after checks that the name is free, at once or when the lease is over, and that nobody
// renews it.
func (c *callbackCase) after(t *testing.T, q *quiet, heard *atomic.Int32) {
	t.Helper()
	if heard.Load() == 0 {
		t.Fatal("the callback was not called: this test sees nothing")
	}
	q.store.Always(locktest.Release, locktest.None)
	q.store.Always(locktest.Acquire, locktest.None)
	if c.stays {
		time.Sleep(time.Minute)
	}
	renewals := q.store.Requests(locktest.Renew)
	time.Sleep(time.Millisecond)
	plain := middleware.WithLock(func(_ context.Context, o order) (lock.Key, error) { return lock.Key{Name: "n", Event: o.ID}, nil },
		func(context.Context, order) error { return nil }, q.with()...)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := plain(ctx, order{ID: "after"}); err != nil {
		t.Errorf("the name is not free: %v", err)
	}
	time.Sleep(time.Hour)
	if now := q.store.Requests(locktest.Renew); now != renewals {
		t.Errorf("%d renewals by nobody", now-renewals)
	}
}

// TestCallbackThatAlwaysPanics: also while the panic before it is told.
func TestCallbackThatAlwaysPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		always := middleware.Observe(func(context.Context, lock.Observation) { panic("callback") })
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, new(trace).sqs, newQuiet().with(always)...)
		var batch *middleware.BatchError
		_, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{message("a", ""), message("b", "panics"), message("c", "fails")}})
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

// TestCallbackThatEndsItsGoroutine, as t.FailNow does in a test: the other records get
// their turn, and the batch its end.
func TestCallbackThatEndsItsGoroutine(t *testing.T) {
	for _, kind := range []lock.Outcome{lock.OutcomeReleased, lock.OutcomeRefused, middleware.OutcomeHandlerFailed, middleware.OutcomeOverdue, lock.OutcomeAlreadyCompleted, lock.OutcomeStoreFailed} {
		t.Run(string(kind), func(t *testing.T) {
			c := callbackCases[kind]
			synctest.Test(t, func(t *testing.T) {
				var heard atomic.Int32
				q := c.prepare(t, &heard)
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				exits := middleware.Observe(func(_ context.Context, o lock.Observation) {
					if o.Outcome == kind {
						heard.Add(1)
						runtime.Goexit()
					}
				})
				h := middleware.EachSQSMessage(func(_ context.Context, m events.SQSMessage) (lock.Key, error) { return c.keyOf(m.MessageId) },
					func(context.Context, events.SQSMessage) error { return c.run(t, q) }, q.with(append(c.opts, exits)...)...)
				r, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{message("1", ""), message("2", ""), message("3", "")}})
				if kind != middleware.OutcomeOverdue && len(r.BatchItemFailures) == 0 {
					t.Errorf("returned %v, %v: a record without an outcome counts as completed", r, err)
				}
				c.after(t, q, &heard)
			})
		})
	}
}

// TestKeyFunctionThatPanics: before any lock is taken.
func TestKeyFunctionThatPanics(t *testing.T) {
	t.Parallel()
	q := newQuiet()
	h := middleware.WithLock(func(context.Context, order) (lock.Key, error) { panic(errRecord) },
		func(context.Context, order) error { t.Error("ran"); return nil }, q.with()...)
	func() {
		defer func() {
			if p := recover(); p != errRecord {
				t.Errorf("the caller got %v", p)
			}
		}()
		_ = h(t.Context(), order{ID: "1"})
	}()
	q.want(t)
	if n := q.store.Requests(locktest.Acquire); n != 0 {
		t.Errorf("%d requests", n)
	}
}
