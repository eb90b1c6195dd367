package middleware_test

import (
	"context"
	"encoding/json"
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

// trace is what handlers of records did, in the order in which they began.
type trace struct {
	mu        sync.Mutex
	began     []string
	at        []time.Time
	running   int
	mostAtOne int
}

func (tr *trace) begin(id string) (end func()) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.began, tr.at = append(tr.began, id), append(tr.at, time.Now())
	tr.running++
	tr.mostAtOne = max(tr.mostAtOne, tr.running)
	return func() {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		tr.running--
	}
}

// message is one of a queue. The body says what its handler does; see act.
func message(id, body string) events.SQSMessage {
	return events.SQSMessage{MessageId: id, Body: body, EventSourceARN: "arn:aws:sqs:us-east-2:123456789012:orders"}
}

func inGroup(group string, m events.SQSMessage) events.SQSMessage {
	m.EventSourceARN += ".fifo"
	m.Attributes = map[string]string{"MessageGroupId": group, "SequenceNumber": fmt.Sprintf("%020d", len(m.MessageId)*1000+int(m.MessageId[len(m.MessageId)-1]))}
	return m
}

var errRecord = errors.New("the record is bad")

// act is a handler that takes 10 ms and ends as the text says.
func (tr *trace) act(ctx context.Context, id, text string) error {
	defer tr.begin(id)()
	time.Sleep(10 * time.Millisecond)
	if _, ok := lock.FromContext(ctx); !ok {
		return errors.New("no lease")
	}
	switch text {
	case "fails":
		return errRecord
	case "panics":
		panic(errRecord)
	case "exits":
		runtime.Goexit()
	}
	return nil
}

func (tr *trace) sqs(ctx context.Context, m events.SQSMessage) error {
	return tr.act(ctx, m.MessageId, m.Body)
}

// underDeadline gives each test fake time and the context of an invocation of 30 s.
func underDeadline(t *testing.T, test func(t *testing.T, ctx context.Context)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		test(t, ctx)
	})
}

// answers checks which messages are to be delivered again, in the JSON that Lambda gets.
func answers(t *testing.T, response any, err error, want ...string) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	b, err := json.Marshal(response)
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		BatchItemFailures []struct{ ItemIdentifier string }
	}
	if err := json.Unmarshal(b, &r); err != nil || strings.Contains(string(b), "null") {
		t.Errorf("the answer %s, %v", b, err)
	}
	got := []string{}
	for _, f := range r.BatchItemFailures {
		got = append(got, f.ItemIdentifier)
	}
	if !slices.Equal(got, want) {
		t.Errorf("returned %q, want %q", got, want)
	}
}

func (q *quiet) count(kind lock.Kind) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, k := range q.kinds {
		if k == kind {
			n++
		}
	}
	return n
}

func TestBatchDuplicatesInside(t *testing.T) { // F32
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		h := middleware.EachSQSMessage(keyfuncs.SQSRecord, tr.sqs, q.with()...)
		a, b := message("a", ""), message("b", "")
		r, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{a, b, a, a}})
		answers(t, r, err)
		if len(tr.began) != 2 || q.count(lock.HeldByOther) != 0 || q.count(lock.AlreadyDone) != 2 {
			t.Errorf("ran %q, %d times held, %d times done", tr.began, q.count(lock.HeldByOther), q.count(lock.AlreadyDone))
		}
	})
}

// TestBatchSameName: different events of one name follow each other, and one that
// fails does not take the next with it.
func TestBatchSameName(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		byBody := func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
			return lock.Key{Name: "customer", Event: m.MessageId}, nil
		}
		h := middleware.EachSQSMessage(byBody, tr.sqs, q.with()...)
		r, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{message("a", ""), message("b", "fails"), message("c", "")}})
		answers(t, r, err, "b")
		if !slices.Equal(tr.began, []string{"a", "b", "c"}) || tr.mostAtOne != 1 || q.count(lock.HeldByOther) != 0 {
			t.Errorf("ran %q, %d at once", tr.began, tr.mostAtOne)
		}
	})
}

func TestBatchPoison(t *testing.T) { // F31
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		var refused []string
		see := middleware.Observe(func(_ context.Context, o lock.Observation) {
			if e, ok := o.Err.(*lock.KeyError); ok {
				refused = append(refused, e.Field)
			}
		})
		key := func(ctx context.Context, m events.SQSMessage) (lock.Key, error) {
			if m.Body == "key panics" {
				panic("key function")
			}
			return keyfuncs.S3ViaSQSRecord(ctx, m)
		}
		h := middleware.EachSQSMessage(key, tr.sqs, append(q.with(), see, middleware.Concurrency(1))...)
		s3 := func(key string) string {
			return `{"Records":[{"s3":{"bucket":{"name":"b"},"object":{"key":"` + key + `","sequencer":"01"}}}]}`
		}
		r, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{
			message("good", s3("a")), message("bad escape", s3("%zz")), message("no JSON", "{"), message("no key", s3("")),
			message("panics", "key panics"), message("test event", `{"Event":"s3:TestEvent"}`), message("good too", s3("b")),
		}})
		answers(t, r, err, "bad escape", "no JSON", "no key", "panics")
		want := []string{"Records[1].body", "Records[2].body", "Records[3].body.Records[0].s3.object.key", "event"}
		if !slices.Equal(tr.began, []string{"good", "good too"}) || !slices.Equal(refused, want) {
			t.Errorf("ran %q, refused %q, want %q", tr.began, refused, want)
		}
	})
}

func TestBatchFIFO(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		h := middleware.EachSQSMessage(keyfuncs.SQSFIFORecord, tr.sqs, q.with()...)
		batch := events.SQSEvent{Records: []events.SQSMessage{
			inGroup("x", message("x1", "")), inGroup("y", message("y1", "")), inGroup("x", message("x2", "fails")),
			inGroup("x", message("x3", "")), inGroup("y", message("y2", "")), inGroup("x", message("x4", "")), inGroup("y", message("y3", "")),
		}}
		r, err := h(ctx, batch)
		answers(t, r, err, "x2", "x3", "x4")
		slices.Sort(tr.began)
		if !slices.Equal(tr.began, []string{"x1", "x2", "y1", "y2", "y3"}) || tr.mostAtOne != 2 {
			t.Errorf("ran %q, %d at once", tr.began, tr.mostAtOne)
		}
		if q.count(lock.WorkFailed) != 1 || q.count(lock.NotBegun) != 1 {
			t.Errorf("observed %q, want one failure, and the rest in one report", q.kinds)
		}
		// The whole batch comes again: what was done is skipped, in order.
		tr.began = nil
		for i := range batch.Records {
			batch.Records[i].Body = ""
		}
		r, err = h(ctx, batch)
		answers(t, r, err)
		if !slices.Equal(tr.began, []string{"x2", "x3", "x4"}) {
			t.Errorf("ran %q again", tr.began)
		}
	})
}

// TestBatchFIFOPoison: a message without a key keeps back its group, whose order it
// would break, and no other.
func TestBatchFIFOPoison(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		key := func(ctx context.Context, m events.SQSMessage) (lock.Key, error) {
			if m.Body == "poison" {
				return lock.Key{}, errRecord
			}
			return keyfuncs.SQSRecord(ctx, m)
		}
		h := middleware.EachSQSMessage(key, tr.sqs, q.with(middleware.OrderByName())...) // which is for streams
		r, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{
			inGroup("x", message("x1", "poison")), inGroup("x", message("x2", "")), inGroup("y", message("y1", "")),
		}})
		answers(t, r, err, "x1", "x2")
	})
}

// TestBatchFairQueue: groups of a standard queue have no order to keep.
func TestBatchFairQueue(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		h := middleware.EachSQSMessage(keyfuncs.SQSRecord, tr.sqs, q.with()...)
		var batch events.SQSEvent
		for _, m := range []events.SQSMessage{message("a", "fails"), message("b", ""), message("c", "")} {
			m.Attributes = map[string]string{"MessageGroupId": "tenant"}
			batch.Records = append(batch.Records, m)
		}
		r, err := h(ctx, batch)
		answers(t, r, err, "a")
		if tr.mostAtOne != 3 {
			t.Errorf("%d at once", tr.mostAtOne)
		}
	})
}

// TestBatchChainsCross: a record that was kept back by its group does not let the next
// of its name run beside the one before.
func TestBatchChainsCross(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		byBody := func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
			name, _, _ := strings.Cut(m.Body, " ")
			return lock.Key{Name: name, Event: m.MessageId}, nil
		}
		slow := func(ctx context.Context, m events.SQSMessage) error {
			if m.MessageId == "n1" {
				time.Sleep(time.Second)
			}
			_, does, _ := strings.Cut(m.Body, " ")
			return tr.act(ctx, m.MessageId, does)
		}
		h := middleware.EachSQSMessage(byBody, slow, q.with()...)
		r, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{
			inGroup("x", message("x1", "other fails")), message("n1", "name"), inGroup("x", message("n2", "name")), message("n3", "name"),
		}})
		answers(t, r, err, "x1", "n2")
		if !slices.Equal(tr.began, []string{"x1", "n1", "n3"}) || q.count(lock.HeldByOther) != 0 {
			t.Errorf("ran %q, %d times held", tr.began, q.count(lock.HeldByOther))
		}
	})
}

func TestBatchAllFail(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		h := middleware.EachSQSMessage(keyfuncs.SQSRecord, tr.sqs, q.with()...)
		r, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{message("a", "fails"), message("b", "panics"), message("c", "exits")}})
		answers(t, r, err, "a", "b", "c")
		if q.count(lock.WorkFailed) != 2 || q.count(lock.Released) != 3 {
			t.Errorf("observed %q", q.kinds)
		}
		// Nothing was recorded and no lock is left: a retry runs all of them.
		r, err = h(ctx, events.SQSEvent{Records: []events.SQSMessage{message("a", ""), message("b", ""), message("c", "")}})
		answers(t, r, err)
		if len(tr.began) != 6 {
			t.Errorf("ran %q", tr.began)
		}
	})
}

// TestBatchGoexit: a handler that ends its goroutine, as t.FailNow does, ends no other
// record.
func TestBatchGoexit(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		h := middleware.EachSQSMessage(keyfuncs.SQSRecord, tr.sqs, q.with(middleware.Concurrency(1))...)
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
		if len(tr.began) != 1 || q.count(lock.StoreFailed) != 0 || q.count(lock.NotBegun) != 1 {
			t.Errorf("ran %q, observed %q", tr.began, q.kinds)
		}
	})
}

// TestBatchWithoutIdentifier: a failure that cannot be named must not get lost, and
// an event without records is of another source.
func TestBatchWithoutIdentifier(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		h := middleware.EachSQSMessage(keyfuncs.SQSRecord, tr.sqs, q.with()...)
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
		h := middleware.EachSQSMessage(keyfuncs.SQSRecord, tr.sqs, q.with(middleware.RaisePanics(), middleware.Concurrency(1))...)
		defer func() {
			if p := recover(); p != errRecord || len(tr.began) != 3 || q.count(lock.Released) != 3 {
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
		h := middleware.EachSQSMessage(keyfuncs.SQSRecord, slow, q.with(middleware.Concurrency(2))...)
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
		if q.count(lock.NotBegun) != 1 || q.count(lock.WorkFailed) != 2 || q.count(lock.Refused) != 0 {
			t.Errorf("observed %q: want one report for all that were not begun", q.kinds)
		}
		// An invocation that comes too late begins nothing.
		late, cancel := context.WithTimeout(ctx, 90*time.Millisecond)
		defer cancel()
		r, err = h(late, events.SQSEvent{Records: batch.Records[6:9]})
		answers(t, r, err, "6", "7", "8")
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
				h := middleware.EachSQSMessage(keyfuncs.SQSRecord, tr.sqs, q.with(opts...)...)
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

func TestBatchOfTenThousand(t *testing.T) { // F32
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		most := 0
		var mu sync.Mutex
		h := middleware.EachSQSMessage(keyfuncs.SQSRecord, func(ctx context.Context, m events.SQSMessage) error {
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
		// Other tests of this package have goroutines of their own.
		if len(tr.began) != 10_000 || tr.mostAtOne > middleware.DefaultConcurrency || most-before > 1000 {
			t.Errorf("%d ran, %d at once, %d goroutines", len(tr.began), tr.mostAtOne, most)
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
			h := middleware.EachSQSMessage(keyfuncs.SQSRecord, tr.sqs, q.with(c.opts...)...)
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
		r, err := middleware.EachSQSMessage(keyfuncs.SQSRecord, tr.sqs, q.with()...)(ctx, batch)
		answers(t, r, err, "a", "b")
		unlocked := func(_ context.Context, m events.SQSMessage) error {
			defer tr.begin(m.MessageId)()
			return nil
		}
		r, err = middleware.EachSQSMessage(keyfuncs.SQSRecord, unlocked, q.with(middleware.FailOpen())...)(ctx, batch)
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
		"the handler is nil":      func() { middleware.EachSQSMessage(keyfuncs.SQSRecord, nil) },
		"OnHeld(Respond) needs": func() {
			middleware.EachSQSMessage(keyfuncs.SQSRecord, handler, q.with(middleware.OnHeld(middleware.Respond(1)))...)
		},
		"OnDone(Replay) needs": func() {
			middleware.EachSQSMessage(keyfuncs.SQSRecord, handler, q.with(middleware.OnDone(middleware.Replay))...)
		},
		"use at least 1": func() { middleware.Concurrency(0) },
		"Lease is negative": func() {
			middleware.EachSQSMessage(keyfuncs.SQSRecord, handler, q.with(middleware.Lease(-time.Second))...)
		},
		"for handlers of single records": func() {
			middleware.WithLock(keyfuncs.SQSMessage, func(context.Context, events.SQSEvent) error { return nil }, q.with(middleware.Concurrency(2))...)
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
