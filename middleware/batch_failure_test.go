package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
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
)

// TestBatchGoexit shows that a handler that ends its goroutine, as t.FailNow
// does, fails only its own record, which is reported: the partial answer does
// not tell why.
func TestBatchGoexit(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, runs.sqs, f.options(middleware.Concurrency(1))...)
		r, err := h(ctx, sqsBatch(message("a", "exits"), message("b", ""), message("c", "exits")))
		wantReturned(t, r, err, "a", "c")
		if len(runs.began) != 3 {
			t.Errorf("ran %q", runs.began)
		}
		failed := f.of(middleware.OutcomeHandlerFailed)
		if len(failed) != 2 || failed[0].Key.Event != "a" || failed[1].Key.Event != "c" || !strings.Contains(failed[0].Err.Error(), "runtime.Goexit") {
			t.Errorf("reported %v", failed)
		}
	})
}

// TestFailedBatchInsideARecord shows that a record which ran does not count as
// not begun if its handler fails with what another batch did not begin.
func TestFailedBatchInsideARecord(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f := newFixture()
		inner := middleware.EachSQSMessage(keyfuncs.SQSMessage, handles[events.SQSMessage], newFixture().options(middleware.Namespace("inner"))...)
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(ctx context.Context, m events.SQSMessage) error {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			_, err := inner(ended, sqsBatch(m))
			return err
		}, f.options()...)
		if _, err := h(ctx, sqsBatch(message("a", ""))); !errors.As(err, new(*middleware.BatchError)) {
			t.Errorf("got %v", err)
		}
		if f.count(middleware.OutcomeNotBegun) != 0 || f.count(middleware.OutcomeHandlerFailed) != 1 {
			t.Errorf("observed %q", f.outcomes())
		}
	})
}

// TestBatchCancelled shows that no record begins after the invocation was
// cancelled.
func TestBatchCancelled(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		ctx, cancel := context.WithCancelCause(ctx)
		h := middleware.EachSNSRecord(keyfuncs.SNSRecord, func(ctx context.Context, r events.SNSEventRecord) error {
			cancel(errRecord)
			return runs.act(ctx, r.SNS.MessageID, "")
		}, f.options(middleware.Concurrency(1))...)
		e := events.SNSEvent{Records: make([]events.SNSEventRecord, 3)}
		for i := range e.Records {
			e.Records[i].SNS.MessageID = fmt.Sprint(i)
		}
		var batch *middleware.BatchError
		if err := h(ctx, e); !errors.As(err, &batch) || len(batch.Failed) != 2 || !errors.Is(err, errRecord) || errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "deadline") {
			t.Errorf("%v", err)
		}
		if len(runs.began) != 1 || f.count(lock.OutcomeStoreFailed) != 0 || f.count(middleware.OutcomeNotBegun) != 1 {
			t.Errorf("ran %q, observed %q", runs.began, f.outcomes())
		}
	})
}

// TestBatchWithoutIdentifier shows that the failure of a record that has no
// identifier is returned as an error, whether or not another one has failed
// before it, and that an event without records is refused.
func TestBatchWithoutIdentifier(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, runs.sqs, f.options()...)
		r, err := h(ctx, sqsBatch(message("a", "fails"), message("", ""), message("c", "")))
		var batch *middleware.BatchError
		if !errors.As(err, &batch) || len(batch.Failed) != 2 || batch.Failed[1].Record != "Records[1]" || r.BatchItemFailures == nil {
			t.Errorf("%+v, %v", r, err)
		}
		// Both key functions refuse a record without a sequence number.
		shard := middleware.KinesisRecords{KinesisEvent: events.KinesisEvent{Records: []events.KinesisEventRecord{
			{EventSourceArn: "arn", EventID: "shardId-1:1", Kinesis: events.KinesisRecord{PartitionKey: "1", SequenceNumber: "1"}}, {},
		}}}
		clicks, err := middleware.EachKinesisRecord(keyfuncs.KinesisRecord, handles[events.KinesisEventRecord], f.options()...)(ctx, shard)
		if batch = nil; !errors.As(err, &batch) || len(batch.Failed) != 1 {
			t.Errorf("%+v, %v", clicks, err)
		}
		table := middleware.DynamoDBRecords{DynamoDBEvent: events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{
			{EventSourceArn: "arn:aws:dynamodb:eu-west-1:123456789012:table/t/stream/2026-06-10T19:26:16.525", EventID: "1", Change: events.DynamoDBStreamRecord{
				Keys: map[string]events.DynamoDBAttributeValue{"id": events.NewStringAttribute("1")}, SequenceNumber: "1",
			}}, {},
		}}}
		changes, err := middleware.EachDynamoDBRecord(keyfuncs.DynamoDBRecord, handles[events.DynamoDBEventRecord], f.options()...)(ctx, table)
		if batch = nil; !errors.As(err, &batch) || len(batch.Failed) != 1 {
			t.Errorf("%+v, %v", changes, err)
		}
		for _, event := range []events.SQSEvent{{}, {Records: []events.SQSMessage{}}} {
			if r, err := h(ctx, event); err == nil || !strings.Contains(err.Error(), "another source") || r.BatchItemFailures == nil {
				t.Errorf("%+v, %v", r, err)
			}
		}
	})
}

// TestBatchNearTheDeadline shows that no record begins near the deadline, and
// that those that did not begin are returned in one report.
func TestBatchNearTheDeadline(t *testing.T) { // F12, F32
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		slow := func(ctx context.Context, m events.SQSMessage) error {
			defer runs.begin(m.MessageId)()
			select {
			case <-time.After(8 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, slow, f.options(middleware.Concurrency(2))...)
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
		wantReturned(t, r, err, rest...)
		if took := time.Since(began); len(runs.began) != 8 || took < 29*time.Second || took >= 30*time.Second {
			t.Errorf("%d began, took %v", len(runs.began), took)
		}
		if f.count(middleware.OutcomeNotBegun) != 1 || f.count(middleware.OutcomeHandlerFailed) != 2 || f.count(lock.OutcomeRefused) != 0 {
			t.Errorf("observed %q: want one report for all that were not begun", f.outcomes())
		}
		if o := f.of(middleware.OutcomeNotBegun)[0]; strings.Contains(o.Err.Error(), "%!") {
			t.Errorf("the reason is written as %q", o.Err)
		}
		// An invocation that comes too late begins nothing.
		late, cancel := context.WithTimeout(ctx, 90*time.Millisecond)
		defer cancel()
		r, err = h(late, events.SQSEvent{Records: batch.Records[6:9]})
		wantAllReturned(t, r, err, "6", "7", "8")
		// Under Latest, a *lock.DeadlineError says of a record that it has run.
		if len(runs.began) != 8 || !errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(*lock.DeadlineError)) {
			t.Errorf("%d began, %v", len(runs.began), err)
		}
	})
}

// TestBatchConcurrency shows that no more records than asked for are handled at
// a time, and that none waits until another has its lock.
func TestBatchConcurrency(t *testing.T) {
	for n, opts := range map[int][]middleware.Option{16: nil, 3: {middleware.Concurrency(3)}} {
		t.Run(fmt.Sprint(n, " at a time"), func(t *testing.T) {
			underDeadline(t, func(t *testing.T, ctx context.Context) {
				f, runs := newFixture(), &runLog{}
				f.faulty.Plan(fault.Acquire, fault.Hang) // the first waits a second for its lock
				h := middleware.EachSQSMessage(keyfuncs.SQSMessage, runs.sqs, f.options(opts...)...)
				var batch events.SQSEvent
				for i := range 50 {
					batch.Records = append(batch.Records, message(fmt.Sprint(i), ""))
				}
				start := time.Now()
				r, err := h(ctx, batch)
				wantReturned(t, r, err)
				if runs.mostAtOne > n || runs.mostAtOne < n-1 || len(runs.began) != 50 {
					t.Errorf("%d at the same time, %d ran", runs.mostAtOne, len(runs.began))
				}
				if others, last := runs.at[48].Sub(start), runs.at[49].Sub(start); others > time.Second/2 || last < time.Second {
					t.Errorf("49 began within %v, the one without an answer after %v", others, last)
				}
			})
		})
	}
}

// TestBatchOfTenThousand shows that a large batch needs no more goroutines than
// a small one. It is not parallel to other tests, whose goroutines would count.
func TestBatchOfTenThousand(t *testing.T) { // F32
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a goroutine that runs finalizers would count, too
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		f, runs := newFixture(), &runLog{}
		most := 0
		var mu sync.Mutex
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(ctx context.Context, m events.SQSMessage) error {
			mu.Lock()
			most = max(most, runtime.NumGoroutine())
			mu.Unlock()
			return runs.act(ctx, m.MessageId, m.Body)
		}, f.options()...)
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
		wantReturned(t, r, err, want...)
		if len(runs.began) != 10_000 || runs.mostAtOne != middleware.DefaultConcurrency || most-before > middleware.DefaultConcurrency {
			t.Errorf("%d ran, %d at the same time, %d goroutines more than before", len(runs.began), runs.mostAtOne, most-before)
		}
	})
}

// TestHeldRecordIsReturned shows that a message whose lock is held is not
// acknowledged.
func TestHeldRecordIsReturned(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		f.acquireElsewhere(t, lock.Key{Name: "sqs/a", Event: "a"})
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, runs.sqs, f.options()...)
		r, err := h(ctx, sqsBatch(message("a", ""), message("b", "")))
		wantReturned(t, r, err, "a")
		if !slices.Equal(runs.began, []string{"b"}) {
			t.Errorf("ran %q", runs.began)
		}
	})
}

// TestBatchStoreFailure shows that every record fails if the store refuses, and
// that FailOpen runs them only if the store does not answer.
func TestBatchStoreFailure(t *testing.T) { // F13
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		f.faulty.Always(fault.Acquire, fault.Deny)
		batch := sqsBatch(message("a", ""), message("b", ""))
		r, err := middleware.EachSQSMessage(keyfuncs.SQSMessage, runs.sqs, f.options()...)(ctx, batch)
		wantAllReturned(t, r, err, "a", "b")
		unlocked := func(_ context.Context, m events.SQSMessage) error {
			defer runs.begin(m.MessageId)()
			return nil
		}
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, unlocked, f.options(middleware.FailOpen())...)
		r, err = h(ctx, batch) // a denied action is an answer
		wantAllReturned(t, r, err, "a", "b")
		f.faulty.Always(fault.Acquire, fault.DropBefore)
		r, err = h(ctx, batch)
		wantReturned(t, r, err)
		if len(runs.began) != 2 {
			t.Errorf("ran %q", runs.began)
		}
	})
}

// TestBatchWrongUse shows that wrappers of handlers of records refuse what they
// cannot do.
func TestBatchWrongUse(t *testing.T) {
	t.Parallel()
	handler := func(context.Context, events.SQSMessage) error { return nil }
	wrap := func(opts ...middleware.Option) func() {
		return func() { middleware.EachSQSMessage(keyfuncs.SQSMessage, handler, newFixture().options(opts...)...) }
	}
	for name, c := range map[string]struct {
		use    func()
		within string
	}{
		"nil key":        {func() { middleware.EachSQSMessage(keyfuncs.Func[events.SQSMessage](nil), handler) }, "the key function is nil"},
		"nil key of any": {func() { middleware.EachSQSMessage(keyfuncs.Func[any](nil), handler) }, "the key function is nil"},
		"nil handler":    {func() { middleware.EachSQSMessage(keyfuncs.SQSMessage, nil) }, "the handler is nil"},
		"Respond":        {wrap(middleware.OnHeld(middleware.Respond(1))), "has none: choose Fail or Wait"},
		"Respond, whole": {func() {
			middleware.WithLock(keyfuncs.Single[events.SQSEvent](keyfuncs.SQSMessage), func(context.Context, events.SQSEvent) error { return nil }, newFixture().options(middleware.OnHeld(middleware.Respond(1)))...)
		}, "has none: choose Fail or Wait"},
		"Respond, OnlyLatest": {wrap(middleware.OnlyLatest(), middleware.OnHeld(middleware.Respond(1))), "leave OnHeld out"},
		"Respond, Latest": {func() {
			middleware.Latest(byOrder, func(context.Context, order) error { return nil }, newFixture().options(middleware.OnHeld(middleware.Respond(1)))...)
		}, "leave OnHeld out"},
		"Replay":         {wrap(middleware.OnCompleted(middleware.Replay)), "OnCompleted(Replay) needs"},
		"negative lease": {wrap(fixedLease(-time.Second)), "Lease is negative"},
		"none at a time": {func() { middleware.Concurrency(0) }, "use at least 1"},
		"option of batches for a whole event": {func() {
			middleware.WithLock(keyfuncs.Single[events.SQSEvent](keyfuncs.SQSMessage), func(context.Context, events.SQSEvent) error { return nil }, newFixture().options(middleware.Concurrency(2))...)
		}, "for handlers of single records"},
	} {
		t.Run(name, func(t *testing.T) { wantPanic(t, c.use, c.within) })
	}
}

// TestNothingBeginsToBeCutShort: with OnInterrupted, a record does not begin
// where the longest before it would not have ended in time, because it would
// count as interrupted; with Skip, it would be lost.
func TestNothingBeginsToBeCutShort(t *testing.T) { // F12, F19
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		runs := &runLog{}
		slow := func(_ context.Context, m events.SQSMessage) error {
			defer runs.begin(m.MessageId)()
			time.Sleep(expect.Value(time.ParseDuration(m.Body))(t))
			return nil
		}
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, slow, newFixture().options(middleware.Concurrency(1), middleware.OnInterrupted(middleware.Skip))...)
		batch := sqsBatch(message("0", "6500ms"), message("longest", "8s"), message("2", "6500ms"), message("3", "1s"))
		r, err := h(ctx, batch)
		wantReturned(t, r, err, "3")
		if want := []string{"0", "longest", "2"}; !slices.Equal(runs.began, want) {
			t.Errorf("began %v, want %v", runs.began, want)
		}
	})
}
