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

func (q *quiet) count(kind lock.Outcome) int {
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
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, tr.sqs, q.with()...)
		a, b := message("a", ""), message("b", "")
		r, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{a, b, a, a}})
		answers(t, r, err)
		if len(tr.began) != 2 || q.count(lock.OutcomeHeld) != 0 || q.count(lock.OutcomeAlreadyCompleted) != 2 {
			t.Errorf("ran %q, %d times held, %d times done", tr.began, q.count(lock.OutcomeHeld), q.count(lock.OutcomeAlreadyCompleted))
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
		if !slices.Equal(tr.began, []string{"a", "b", "c"}) || tr.mostAtOne != 1 || q.count(lock.OutcomeHeld) != 0 {
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
			return keyfuncs.SQSBody(keyfuncs.S3Object)(ctx, m)
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
		h := middleware.EachSQSMessage(keyfuncs.SQSFIFOMessage, tr.sqs, q.with()...)
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
		if q.count(middleware.OutcomeHandlerFailed) != 1 || q.count(middleware.OutcomeNotBegun) != 1 {
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
			return keyfuncs.SQSMessage(ctx, m)
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
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, tr.sqs, q.with()...)
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
		if !slices.Equal(tr.began, []string{"x1", "n1", "n3"}) || q.count(lock.OutcomeHeld) != 0 {
			t.Errorf("ran %q, %d times held", tr.began, q.count(lock.OutcomeHeld))
		}
	})
}
