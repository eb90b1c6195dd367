package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestBatchGoexit: a handler that ends its goroutine, as t.FailNow does, ends no other
// record.
func TestBatchGoexit(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, tr.sqs, q.with(middleware.Concurrency(1))...)
		r, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{message("a", "exits"), message("b", ""), message("c", "exits")}})
		answers(t, r, err, "a", "c")
		if len(tr.began) != 3 {
			t.Errorf("ran %q", tr.began)
		}
	})
}

func TestBatchCancelled(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		ctx, cancel := context.WithCancelCause(ctx)
		h := middleware.EachSNSRecord(keyfuncs.SNSRecord, func(ctx context.Context, r events.SNSEventRecord) error {
			cancel(errRecord)
			return tr.act(ctx, r.SNS.MessageID, "")
		}, q.with(middleware.Concurrency(1))...)
		e := events.SNSEvent{Records: make([]events.SNSEventRecord, 3)}
		for i := range e.Records {
			e.Records[i].SNS.MessageID = fmt.Sprint(i)
		}
		var batch *middleware.BatchError
		if err := h(ctx, e); !errors.As(err, &batch) || len(batch.Failed) != 2 || !errors.Is(err, errRecord) {
			t.Errorf("%v", err)
		}
		if len(tr.began) != 1 || q.count(lock.OutcomeStoreFailed) != 0 || q.count(middleware.OutcomeNotBegun) != 1 {
			t.Errorf("ran %q, observed %q", tr.began, q.kinds)
		}
	})
}

// TestBatchWithoutIdentifier: a failure that cannot be named must not get lost, and
// an event without records is of another source.
func TestBatchWithoutIdentifier(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, tr.sqs, q.with()...)
		r, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{message("a", ""), message("", "")}})
		var batch *middleware.BatchError
		if !errors.As(err, &batch) || len(batch.Failed) != 1 || batch.Failed[0].Record != "Records[1]" || r.BatchItemFailures == nil {
			t.Errorf("%+v, %v", r, err)
		}
		for _, event := range []events.SQSEvent{{}, {Records: []events.SQSMessage{}}} {
			if r, err := h(ctx, event); err == nil || !strings.Contains(err.Error(), "another source") || r.BatchItemFailures == nil {
				t.Errorf("%+v, %v", r, err)
			}
		}
	})
}

func TestBatchRaisesPanics(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, tr.sqs, q.with(middleware.RaisePanics(), middleware.Concurrency(1))...)
		defer func() {
			if p := recover(); p != errRecord || len(tr.began) != 3 || q.count(lock.OutcomeReleased) != 3 {
				t.Errorf("panicked with %v after %q, observed %q", p, tr.began, q.kinds)
			}
		}()
		r, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{message("a", "panics"), message("b", ""), message("c", "")}})
		t.Errorf("returned %+v, %v", r, err)
	})
}

func TestBatchNearTheDeadline(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		slow := func(ctx context.Context, m events.SQSMessage) error {
			defer tr.begin(m.MessageId)()
			select {
			case <-time.After(8 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, slow, q.with(middleware.Concurrency(2))...)
		var batch events.SQSEvent
		var rest []string
		for i := range 1000 {
			batch.Records = append(batch.Records, message(fmt.Sprint(i), ""))
			if i >= 6 { // three rounds of two fit into 30 s, the fourth is cut short
				rest = append(rest, fmt.Sprint(i))
			}
		}
		began := time.Now()
		r, err := h(ctx, batch)
		answers(t, r, err, rest...)
		if took := time.Since(began); len(tr.began) != 8 || took < 29*time.Second || took >= 30*time.Second {
			t.Errorf("%d began, took %v", len(tr.began), took)
		}
		if q.count(middleware.OutcomeNotBegun) != 1 || q.count(middleware.OutcomeHandlerFailed) != 2 || q.count(lock.OutcomeRefused) != 0 {
			t.Errorf("observed %q: want one report for all that were not begun", q.kinds)
		}
		// An invocation that comes too late begins nothing.
		late, cancel := context.WithTimeout(ctx, 90*time.Millisecond)
		defer cancel()
		r, err = h(late, events.SQSEvent{Records: batch.Records[6:9]})
		nothingSucceeded(t, r, err, "6", "7", "8")
		if len(tr.began) != 8 {
			t.Errorf("%d began", len(tr.began))
		}
	})
}

// TestBatchConcurrency: no more at a time than asked for, and nobody waits for others
// to get their locks.
func TestBatchConcurrency(t *testing.T) {
	for n, opts := range map[int][]middleware.Option{16: nil, 3: {middleware.Concurrency(3)}} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			underDeadline(t, func(t *testing.T, ctx context.Context) {
				q, tr := newQuiet(), &trace{}
				q.store.Plan(locktest.Acquire, locktest.Hang) // the first waits a second for its lock
				h := middleware.EachSQSMessage(keyfuncs.SQSMessage, tr.sqs, q.with(opts...)...)
				var batch events.SQSEvent
				for i := range 50 {
					batch.Records = append(batch.Records, message(fmt.Sprint(i), ""))
				}
				start := time.Now()
				r, err := h(ctx, batch)
				answers(t, r, err)
				if tr.mostAtOne > n || tr.mostAtOne < n-1 || len(tr.began) != 50 {
					t.Errorf("%d at once, %d ran", tr.mostAtOne, len(tr.began))
				}
				if others, last := tr.at[48].Sub(start), tr.at[49].Sub(start); others > time.Second/2 || last < time.Second {
					t.Errorf("49 began within %v, the one without an answer after %v", others, last)
				}
			})
		})
	}
}

// TestBatchOfTenThousand is not parallel to others, whose goroutines would count.
func TestBatchOfTenThousand(t *testing.T) { // F32
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		q, tr := newQuiet(), &trace{}
		most := 0
		var mu sync.Mutex
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(ctx context.Context, m events.SQSMessage) error {
			mu.Lock()
			most = max(most, runtime.NumGoroutine())
			mu.Unlock()
			return tr.act(ctx, m.MessageId, m.Body)
		}, q.with()...)
		var batch events.SQSEvent
		var want []string
		for i := range 10_000 {
			m := message(fmt.Sprint(i), "")
			if i%100 == 7 {
				m.Body = "fails"
				want = append(want, m.MessageId)
			}
			batch.Records = append(batch.Records, m)
		}
		before := runtime.NumGoroutine()
		r, err := h(ctx, batch)
		answers(t, r, err, want...)
		if len(tr.began) != 10_000 || tr.mostAtOne != middleware.DefaultConcurrency || most-before > middleware.DefaultConcurrency {
			t.Errorf("%d ran, %d at once, %d goroutines more than before", len(tr.began), tr.mostAtOne, most-before)
		}
	})
}

// TestBatchSkipAcknowledges: with Skip a message is deleted while another one of its
// name is worked on; the default returns it.
func TestBatchSkipAcknowledges(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		for _, c := range []struct {
			opts []middleware.Option
			want []string
		}{{nil, []string{"a"}}, {[]middleware.Option{middleware.OnHeld(middleware.Skip)}, nil}} {
			q, tr := newQuiet(), &trace{}
			locker, err := lock.New(q.store, nil)
			if err != nil {
				t.Fatal(err)
			}
			held, err := locker.Acquire(ctx, lock.Key{Name: "sqs/a", Event: "a"})
			if err != nil {
				t.Fatal(err)
			}
			h := middleware.EachSQSMessage(keyfuncs.SQSMessage, tr.sqs, q.with(c.opts...)...)
			r, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{message("a", ""), message("b", "")}})
			answers(t, r, err, c.want...)
			if !slices.Equal(tr.began, []string{"b"}) {
				t.Errorf("ran %q", tr.began)
			}
			if err := held.Release(); err != nil { // it failed: with Skip nothing is left to try again
				t.Error(err)
			}
		}
	})
}

func TestBatchStoreFailure(t *testing.T) { // F13
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		q.store.Always(locktest.Acquire, locktest.Deny)
		batch := events.SQSEvent{Records: []events.SQSMessage{message("a", ""), message("b", "")}}
		r, err := middleware.EachSQSMessage(keyfuncs.SQSMessage, tr.sqs, q.with()...)(ctx, batch)
		nothingSucceeded(t, r, err, "a", "b")
		unlocked := func(_ context.Context, m events.SQSMessage) error {
			defer tr.begin(m.MessageId)()
			return nil
		}
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, unlocked, q.with(middleware.FailOpen())...)
		r, err = h(ctx, batch) // a denied action is an answer
		nothingSucceeded(t, r, err, "a", "b")
		q.store.Always(locktest.Acquire, locktest.Drop)
		r, err = h(ctx, batch)
		answers(t, r, err)
		if len(tr.began) != 2 {
			t.Errorf("ran %q", tr.began)
		}
	})
}

func TestBatchWrongUse(t *testing.T) {
	t.Parallel()
	handler := func(context.Context, events.SQSMessage) error { return nil }
	q := newQuiet()
	for want, build := range map[string]func(){
		"the key function is nil": func() { middleware.EachSQSMessage(nil, handler) },
		"the handler is nil":      func() { middleware.EachSQSMessage(keyfuncs.SQSMessage, nil) },
		"OnHeld(Respond) needs": func() {
			middleware.EachSQSMessage(keyfuncs.SQSMessage, handler, q.with(middleware.OnHeld(middleware.Respond(1)))...)
		},
		"OnCompleted(Replay) needs": func() {
			middleware.EachSQSMessage(keyfuncs.SQSMessage, handler, q.with(middleware.OnCompleted(middleware.Replay))...)
		},
		"use at least 1": func() { middleware.Concurrency(0) },
		"Lease is negative": func() {
			middleware.EachSQSMessage(keyfuncs.SQSMessage, handler, q.with(middleware.FixedLease(-time.Second))...)
		},
		"for handlers of single records": func() {
			middleware.WithLock(keyfuncs.Single[events.SQSEvent](keyfuncs.SQSMessage), func(context.Context, events.SQSEvent) error { return nil }, q.with(middleware.Concurrency(2))...)
		},
	} {
		func() {
			defer func() {
				if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), want) {
					t.Errorf("panicked with %v, want %q", p, want)
				}
			}()
			build()
		}()
	}
}
