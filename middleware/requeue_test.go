package middleware_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestRequeuedRecord shows that a record whose claim is throttled comes after
// the others, but before those that wait for it, and runs once.
func TestRequeuedRecord(t *testing.T) { // F63
	for name, c := range map[string]struct {
		messages []events.SQSMessage
		ran      []string
	}{
		"within a lock":  {[]events.SQSMessage{message("a", ""), message("b", ""), message("c", "")}, []string{"b", "c", "a"}},
		"standard queue": {[]events.SQSMessage{message("a", ""), message("b", ""), message("c", "")}, []string{"b", "c", "a"}},
		"FIFO queue": {[]events.SQSMessage{
			inGroup("x", message("x1", "")), inGroup("x", message("x2", "")), inGroup("y", message("y1", "")),
		}, []string{"y1", "x1", "x2"}},
		"one name": {[]events.SQSMessage{message("n1", "same"), message("n2", "same"), message("a", "")}, []string{"a", "n1", "n2"}},
	} {
		t.Run(name, func(t *testing.T) {
			underDeadline(t, func(t *testing.T, ctx context.Context) {
				f, runs := newFixture(), &runLog{}
				if name == "within a lock" {
					locker := expect.Value(lock.New(f.faulty, &lock.Options{Logger: noLogger}))(t)
					lk := expect.Value(locker.Acquire(ctx, lock.Key{Name: "around"}))(t)
					defer func() { _ = lk.Release() }()
					ctx = lk.Context()
				}
				f.faulty.Plan(fault.Acquire, fault.Throttle)
				key := func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
					return lock.Key{Name: cmp.Or(m.Body, m.MessageId), Event: m.MessageId}, nil
				}
				h := middleware.EachSQSMessage(key, runs.sqs, f.options(middleware.Concurrency(1))...)
				r, err := h(ctx, sqsBatch(c.messages...))
				wantReturned(t, r, err)
				if !slices.Equal(runs.began, c.ran) || f.count(lock.OutcomeRequeued) != 1 || f.count(lock.OutcomeStoreFailed) != 0 {
					t.Errorf("ran %q, want %q; observed %q", runs.began, c.ran, f.outcomes())
				}
			})
		})
	}
}

// TestAroundRequeuedRecord shows that what runs around a record sees that its
// claim was throttled, runs again with it, and cannot decide what becomes of
// the record unless it panics.
func TestAroundRequeuedRecord(t *testing.T) { // F63
	for name, c := range map[string]struct {
		after       func(error) error // next returned an error
		ran, called int
		returned    []string
	}{
		"passes it on": {func(err error) error { return err }, 2, 3, nil},
		"swallows it":  {func(error) error { return nil }, 2, 3, nil},
		"replaces it":  {func(error) error { return errRecord }, 2, 3, nil},
		"panics":       {func(error) error { panic(errRecord) }, 1, 2, []string{"a"}},
		"exits":        {func(error) error { runtime.Goexit(); return nil }, 1, 2, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			underDeadline(t, func(t *testing.T, ctx context.Context) {
				f, runs := newFixture(), &runLog{}
				f.faulty.Plan(fault.Acquire, fault.Throttle)
				called := 0
				around := middleware.Around(func(ctx context.Context, _ events.SQSMessage, next func(context.Context) error) error {
					called++
					err := next(ctx)
					if err == nil {
						return nil
					}
					if !errors.As(err, new(*lock.StoreError)) {
						t.Errorf("next returned %v", err)
					}
					return c.after(err)
				})
				h := middleware.EachSQSMessage(keyfuncs.SQSMessage, runs.sqs, f.options(around, middleware.Concurrency(1))...)
				r, err := h(ctx, sqsBatch(message("a", ""), message("b", "")))
				wantReturned(t, r, err, c.returned...)
				if len(runs.began) != c.ran || called != c.called {
					t.Errorf("ran %q, called %d times", runs.began, called)
				}
			})
		})
	}
}

// TestServedRecordNeedsNoTurn shows that a record which the run before it has
// served waits for no claim, because it makes none.
func TestServedRecordNeedsNoTurn(t *testing.T) { // F63
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f := newFixture()
		f.faulty.Plan(fault.Acquire, fault.Throttle)
		same := func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
			return lock.Key{Name: "same", Event: m.MessageId}, nil
		}
		var ran time.Time
		h := middleware.EachSQSMessage(same, func(context.Context, events.SQSMessage) error {
			ran = time.Now()
			return nil
		}, f.options(middleware.OnlyLatest(), middleware.Concurrency(1))...)
		r, err := h(ctx, sqsBatch(message("a", ""), message("b", "")))
		wantReturned(t, r, err)
		if late := time.Since(ran); late != 0 || f.count(lock.OutcomeRequeued) != 1 {
			t.Errorf("the batch ended %v after the only run; observed %q", late, f.outcomes())
		}
	})
}

// TestRequeueIsForThrottling shows which errors do not put the record back:
// those of claims that were not throttled, and those of the handler.
func TestRequeueIsForThrottling(t *testing.T) { // F9, F13, F63
	other := errors.New("other")
	for name, c := range map[string]struct {
		claim   fault.Fault
		handler error
	}{
		"denied":                 {fault.Deny, nil},
		"no answer":              {fault.DropBefore, nil},
		"conflict":               {fault.Conflict, nil},
		"a throttled own client": {fault.None, &lock.StoreError{Op: "acquire", Temporary: true, Answered: true, Unapplied: true, Err: other}},
	} {
		t.Run(name, func(t *testing.T) {
			underDeadline(t, func(t *testing.T, ctx context.Context) {
				f := newFixture()
				f.faulty.Always(fault.Acquire, c.claim)
				h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error { return c.handler }, f.options()...)
				began := time.Now()
				r, err := h(ctx, sqsBatch(message("a", "")))
				wantAllReturned(t, r, err, "a")
				if took := time.Since(began); took > 3*time.Second || f.count(lock.OutcomeRequeued) > 0 {
					t.Errorf("took %v, observed %q", took, f.outcomes())
				}
			})
		})
	}
}

// TestNestedLockInThrottledBatch shows that locks inside the handlers of a
// throttled batch are acquired, too.
func TestNestedLockInThrottledBatch(t *testing.T) { // F33, F63
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		table := &fault.Limited{Store: memstore.New(), Rate: 100, Wait: 5 * time.Millisecond}
		var mu sync.Mutex
		ran := 0
		inner := middleware.WithLock(keyfuncs.Prefix(keyfuncs.SQSMessage, "inner"), func(context.Context, events.SQSMessage) error {
			mu.Lock()
			defer mu.Unlock()
			ran++
			return nil
		}, middleware.Store(table), noLog)
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(ctx context.Context, m events.SQSMessage) error { return inner(ctx, m) }, f.options(middleware.Store(table))...)
		var batch events.SQSEvent
		for i := range 1000 {
			batch.Records = append(batch.Records, message(fmt.Sprint(i), ""))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := h(ctx, batch)
		sent, _ := table.Requests()
		t.Logf("%d requests", sent)
		wantReturned(t, r, err)
		if failed := f.count(middleware.OutcomeHandlerFailed); ran != 1000 || failed > 0 || sent > 6000 {
			t.Errorf("%d ran, %d failed, %d requests", ran, failed, sent)
		}
	})
}

// TestThrottledLockInRecord shows that a lock inside a record is not taken for
// that of the record, even if the record has none: it is asked for patiently,
// and the record runs once.
func TestThrottledLockInRecord(t *testing.T) { // F33, F63
	noLock := func(context.Context, events.SQSMessage) (lock.Key, error) { return lock.Key{}, keyfuncs.ErrNoLock }
	for name, c := range map[string]struct {
		key   keyfuncs.Func[events.SQSMessage]
		claim fault.Fault
		asks  bool // the lock is inside Ask
	}{
		"with its lock": {keyfuncs.SQSMessage, fault.None, false},
		"without a key": {noLock, fault.None, false},
		"FailOpen":      {keyfuncs.SQSMessage, fault.DropBefore, false},
		"Ask":           {keyfuncs.SQSMessage, fault.None, true},
	} {
		t.Run(name, func(t *testing.T) {
			underDeadline(t, func(t *testing.T, ctx context.Context) {
				f, inside := newFixture(), newFixture()
				inside.faulty.Plan(fault.Acquire, fault.Throttle, fault.Throttle, fault.Throttle)
				inner := middleware.WithLock(lockPerOrder, func(context.Context, order) error { return nil }, inside.options()...)
				asked, ran := 0, 0
				policy := middleware.FailOpen()
				if c.asks {
					f.interrupt(t, expect.Value(keyfuncs.SQSMessage(ctx, message("a", "")))(t))
					policy = middleware.OnInterrupted(middleware.Ask(func(ctx context.Context, _ events.SQSMessage) (bool, error) {
						asked++
						return false, inner(ctx, order{ID: "asked"})
					}))
				}
				f.faulty.Always(fault.Acquire, c.claim)
				h := middleware.EachSQSMessage(c.key, func(ctx context.Context, _ events.SQSMessage) error {
					ran++
					return inner(ctx, order{ID: "ran"})
				}, f.options(policy)...)
				r, err := h(ctx, sqsBatch(message("a", "")))
				wantReturned(t, r, err)
				if ran != 1 || asked > 1 || f.count(lock.OutcomeRequeued)+inside.count(lock.OutcomeRequeued) > 0 {
					t.Errorf("ran %d times, asked %d times; observed %q and %q", ran, asked, f.outcomes(), inside.outcomes())
				}
			})
		})
	}
}

// TestRecordsThatClaimNothing shows that records without a key need no turn:
// the others have all the time.
func TestRecordsThatClaimNothing(t *testing.T) { // F31, F63
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f := newFixture()
		table := &fault.Limited{Store: memstore.New(), Rate: 1000, Wait: 5 * time.Millisecond, Full: fullFor(5 * time.Second)}
		key := func(ctx context.Context, m events.SQSMessage) (lock.Key, error) {
			if m.Body == "poison" {
				return lock.Key{}, errRecord
			}
			return keyfuncs.SQSMessage(ctx, m)
		}
		var ended time.Time
		handler := func(context.Context, events.SQSMessage) error {
			ended = time.Now()
			return nil
		}
		h := middleware.EachSQSMessage(key, handler, f.options(middleware.Store(table), middleware.Concurrency(1))...)
		var batch events.SQSEvent
		var want []string
		batch.Records = append(batch.Records, message("good", ""))
		for i := range 100 {
			want = append(want, fmt.Sprint(i))
			batch.Records = append(batch.Records, message(want[i], "poison"))
		}
		began := time.Now()
		r, err := h(ctx, batch)
		wantReturned(t, r, err, want...)
		if took := ended.Sub(began); took < 5*time.Second || took > 8*time.Second {
			t.Errorf("the other record ran after %v", took)
		}
		if sent, _ := table.Requests(); sent > 100 {
			t.Errorf("%d requests", sent)
		}
	})
}
