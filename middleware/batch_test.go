package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestBatchDuplicatesInside shows that duplicates in one batch wait for the
// first, and are then skipped.
func TestBatchDuplicatesInside(t *testing.T) { // F32
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, runs.sqs, f.options()...)
		a, b := message("a", ""), message("b", "")
		r, err := h(ctx, sqsBatch(a, b, a, a))
		wantReturned(t, r, err)
		if len(runs.began) != 2 || f.count(lock.OutcomeHeld) != 0 || f.count(lock.OutcomeAlreadyCompleted) != 2 {
			t.Errorf("ran %q, %d times held, %d times already completed", runs.began, f.count(lock.OutcomeHeld), f.count(lock.OutcomeAlreadyCompleted))
		}
	})
}

// TestBatchSameName shows that different events of one name run one after the
// other, and that one that fails does not block the next.
func TestBatchSameName(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		oneName := func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
			return lock.Key{Name: "customer", Event: m.MessageId}, nil
		}
		h := middleware.EachSQSMessage(oneName, runs.sqs, f.options()...)
		r, err := h(ctx, sqsBatch(message("a", ""), message("b", "fails"), message("c", "")))
		wantReturned(t, r, err, "b")
		if !slices.Equal(runs.began, []string{"a", "b", "c"}) || runs.mostAtOne != 1 || f.count(lock.OutcomeHeld) != 0 {
			t.Errorf("ran %q, %d at the same time", runs.began, runs.mostAtOne)
		}
	})
}

// TestBatchPoison shows that a message without a key fails alone, and that the
// observation names it.
func TestBatchPoison(t *testing.T) { // F31
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		key := func(ctx context.Context, m events.SQSMessage) (lock.Key, error) {
			if m.Body == "key panics" {
				panic("key function")
			}
			return keyfuncs.SQSBody(keyfuncs.S3Object)(ctx, m)
		}
		h := middleware.EachSQSMessage(key, runs.sqs, f.options(middleware.Concurrency(1))...)
		s3 := func(key string) string {
			return `{"Records":[{"s3":{"bucket":{"name":"b"},"object":{"key":"` + key + `","sequencer":"01"}}}]}`
		}
		r, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{
			message("good", s3("a")), message("bad escape", s3("%zz")), message("no JSON", "{"), message("no key", s3("")),
			message("panics", "key panics"), message("test event", `{"Event":"s3:TestEvent"}`), message("good too", s3("b")),
		}})
		wantReturned(t, r, err, "bad escape", "no JSON", "no key", "panics")
		var refused []string
		for _, s := range f.of(lock.OutcomeRefused) {
			refused = append(refused, s.Err.(*lock.NoKeyError).Field)
		}
		want := []string{"Records[1].body", "Records[2].body", "Records[3].body.Records[0].s3.object.key", "event"}
		if !slices.Equal(runs.began, []string{"good", "good too"}) || !slices.Equal(refused, want) {
			t.Errorf("ran %q, refused %q, want %q", runs.began, refused, want)
		}
	})
}

// TestBatchFIFO shows that the messages of a group keep their order, that a
// failure keeps back the rest of its group, and that groups do not wait for
// each other.
func TestBatchFIFO(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		h := middleware.EachSQSMessage(keyfuncs.SQSFIFOMessage, runs.sqs, f.options()...)
		batch := sqsBatch(
			inGroup("x", message("x1", "")), inGroup("y", message("y1", "")), inGroup("x", message("x2", "fails")),
			inGroup("x", message("x3", "")), inGroup("y", message("y2", "")), inGroup("x", message("x4", "")), inGroup("y", message("y3", "")),
		)
		r, err := h(ctx, batch)
		wantReturned(t, r, err, "x2", "x3", "x4")
		slices.Sort(runs.began)
		if !slices.Equal(runs.began, []string{"x1", "x2", "y1", "y2", "y3"}) || runs.mostAtOne != 2 {
			t.Errorf("ran %q, %d at the same time", runs.began, runs.mostAtOne)
		}
		if f.count(middleware.OutcomeHandlerFailed) != 1 || f.count(middleware.OutcomeNotBegun) != 1 {
			t.Errorf("observed %q, want one failure, and the rest in one report", f.outcomes())
		} else if err := f.of(middleware.OutcomeNotBegun)[0].Err; !strings.Contains(err.Error(), "2 of 7 records") {
			t.Errorf("%v, want that it tells 2 of 7", err)
		}
		// When the whole batch comes again, the completed messages are skipped.
		runs.began = nil
		for i := range batch.Records {
			batch.Records[i].Body = ""
		}
		r, err = h(ctx, batch)
		wantReturned(t, r, err)
		if !slices.Equal(runs.began, []string{"x2", "x3", "x4"}) {
			t.Errorf("ran %q again", runs.began)
		}
	})
}

// TestBatchFIFOPoison shows that a message without a key keeps back its own
// group, whose order would break, and no other.
func TestBatchFIFOPoison(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		key := func(ctx context.Context, m events.SQSMessage) (lock.Key, error) {
			if m.Body == "poison" {
				return lock.Key{}, errRecord
			}
			return keyfuncs.SQSMessage(ctx, m)
		}
		h := middleware.EachSQSMessage(key, runs.sqs, f.options()...)
		r, err := h(ctx, sqsBatch(
			inGroup("x", message("x1", "poison")), inGroup("x", message("x2", "")), inGroup("y", message("y1", "")),
		))
		wantReturned(t, r, err, "x1", "x2")
	})
}

// TestBatchFairQueue shows that groups of a standard queue have no order.
func TestBatchFairQueue(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, runs.sqs, f.options()...)
		var batch events.SQSEvent
		for _, m := range []events.SQSMessage{message("a", "fails"), message("b", ""), message("c", "")} {
			m.Attributes = map[string]string{"MessageGroupId": "tenant"}
			batch.Records = append(batch.Records, m)
		}
		r, err := h(ctx, batch)
		wantReturned(t, r, err, "a")
		if runs.mostAtOne != 3 {
			t.Errorf("%d at the same time", runs.mostAtOne)
		}
	})
}

// TestBatchChainsCross shows that the third record of a name waits for the
// first one also if the second one is kept back by its group.
func TestBatchChainsCross(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		nameInBody := func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
			name, _, _ := strings.Cut(m.Body, " ")
			return lock.Key{Name: name, Event: m.MessageId}, nil
		}
		slow := func(ctx context.Context, m events.SQSMessage) error {
			if m.MessageId == "n1" {
				time.Sleep(time.Second)
			}
			_, does, _ := strings.Cut(m.Body, " ")
			return runs.act(ctx, m.MessageId, does)
		}
		h := middleware.EachSQSMessage(nameInBody, slow, f.options()...)
		r, err := h(ctx, sqsBatch(
			inGroup("x", message("x1", "other fails")), message("n1", "name"), inGroup("x", message("n2", "name")), message("n3", "name"),
		))
		wantReturned(t, r, err, "x1", "n2")
		if !slices.Equal(runs.began, []string{"x1", "n1", "n3"}) || f.count(lock.OutcomeHeld) != 0 {
			t.Errorf("ran %q, %d times held", runs.began, f.count(lock.OutcomeHeld))
		}
	})
}

// TestDecoratorInsideARecord shows that the handler of a record of a batch may
// be a wrapper itself, on the same store: with other names it runs, and a name
// of the record itself is refused immediately.
func TestDecoratorInsideARecord(t *testing.T) { // F33, F39
	for name, c := range map[string]struct {
		inner keyfuncs.Func[events.SQSMessage]
		ran   int64
	}{
		"other names":   {keyfuncs.Prefix(keyfuncs.SQSMessage, "inner"), 40},
		"the same name": {keyfuncs.SQSMessage, 0},
	} {
		t.Run(name, func(t *testing.T) {
			underDeadline(t, func(t *testing.T, ctx context.Context) {
				f := newFixture()
				options := f.options(middleware.OnHeld(middleware.Wait(time.Minute)))
				var ran, failures atomic.Int64
				inner := middleware.WithLock(c.inner, func(context.Context, events.SQSMessage) error {
					time.Sleep(100 * time.Millisecond) // so that records overlap
					ran.Add(1)
					return nil
				}, options...)
				h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(ctx context.Context, m events.SQSMessage) error {
					err := inner(ctx, m)
					if err != nil && !errors.As(err, new(*lock.ConfigError)) {
						t.Errorf("%v, want a ConfigError", err)
					}
					if err != nil {
						failures.Add(1)
					}
					return err
				}, options...)
				var messages []events.SQSMessage
				for i := range 40 {
					messages = append(messages, message(fmt.Sprint(i), ""))
				}
				began := time.Now()
				_, err := h(ctx, sqsBatch(messages...))
				if ran.Load() != c.ran || failures.Load() != 40-c.ran || (err != nil) != (c.ran == 0) {
					t.Errorf("%d ran, %d failed, %v", ran.Load(), failures.Load(), err)
				}
				if took := time.Since(began); c.ran == 0 && took > 0 {
					t.Errorf("refused after %v", took)
				}
			})
		})
	}
}
