package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// nothingSucceeded: the invocation fails, so that Lambda's metric Errors counts it, and
// the answer, which Lambda ignores then, names every record all the same.
func nothingSucceeded(t *testing.T, response any, err error, want ...string) {
	t.Helper()
	var batch *middleware.BatchError
	if b, ok := err.(*middleware.BatchError); !ok {
		t.Errorf("%v, want a BatchError, which Lambda reports by that name", err)
	} else if batch = b; batch.Records != len(want) || len(batch.Failed) != len(want) {
		t.Errorf("%d of %d records failed, want all of %d: %v", len(batch.Failed), batch.Records, len(want), err)
	}
	answers(t, response, nil, want...)
}

func TestBatchAllFail(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, tr.sqs, q.with()...)
		r, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{message("a", "fails"), message("b", "panics"), message("c", "exits")}})
		nothingSucceeded(t, r, err, "a", "b", "c")
		if q.count(middleware.OutcomeHandlerFailed) != 2 || q.count(lock.OutcomeReleased) != 3 {
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

// TestBatchOfWhichNothingSucceeded: every source with a partial answer gets an error when
// no record was completed or skipped, and a partial answer when one was.
func TestBatchOfWhichNothingSucceeded(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		fifo := middleware.EachSQSMessage(keyfuncs.SQSFIFOMessage, tr.sqs, q.with()...)
		r, err := fifo(ctx, events.SQSEvent{Records: []events.SQSMessage{
			inGroup("x", message("x1", "fails")), inGroup("x", message("x2", "")), inGroup("y", message("y1", "fails")),
		}})
		nothingSucceeded(t, r, err, "x1", "x2", "y1") // x2 was not begun
		one := []events.SQSMessage{inGroup("x", message("x1", "")), inGroup("y", message("y1", "fails"))}
		r, err = fifo(ctx, events.SQSEvent{Records: one})
		answers(t, r, err, "y1")
		r, err = fifo(ctx, events.SQSEvent{Records: one}) // x1 is skipped now, which is no failure
		answers(t, r, err, "y1")

		kinesis := middleware.EachKinesisRecord(keyfuncs.KinesisRecord, tr.kinesis, newQuiet().with()...)
		k, err := kinesis(ctx, kinesisBatch(map[string]string{"a1": "fails"}))
		nothingSucceeded(t, k, err, "100", "101", "102", "103", "104", "105")

		stream := middleware.EachDynamoDBRecord(keyfuncs.DynamoDBRecord, func(ctx context.Context, r events.DynamoDBEventRecord) error {
			return errRecord
		}, newQuiet().with()...)
		var e events.DynamoDBEvent
		for i := range 3 {
			r := events.DynamoDBEventRecord{EventSourceArn: "arn:aws:dynamodb:us-east-2:123456789012:table/orders/stream/2026-06-10T19:26:16.525"}
			r.Change.SequenceNumber = fmt.Sprint(i)
			r.Change.Keys = map[string]events.DynamoDBAttributeValue{"id": events.NewNumberAttribute(fmt.Sprint(i))}
			e.Records = append(e.Records, r)
		}
		d, err := stream(ctx, e)
		nothingSucceeded(t, d, err, "0", "1", "2")

		// What is held by others did not succeed either, and what was ignored did.
		locker, err := lock.New(q.store, nil)
		if err != nil {
			t.Fatal(err)
		}
		other, err := locker.Acquire(ctx, lock.Key{Name: "sqs/a"})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = other.Release() }()
		each := middleware.EachSQSMessage(func(ctx context.Context, m events.SQSMessage) (lock.Key, error) {
			if m.Body == "ignored" {
				return lock.Key{}, keyfuncs.ErrIgnore
			}
			return keyfuncs.SQSMessage(ctx, m)
		}, tr.sqs, q.with()...)
		r, err = each(ctx, events.SQSEvent{Records: []events.SQSMessage{message("a", "")}})
		nothingSucceeded(t, r, err, "a")
		if !errors.Is(err, lock.ErrHeld) {
			t.Errorf("%v does not say why", err)
		}
		r, err = each(ctx, events.SQSEvent{Records: []events.SQSMessage{message("a", ""), message("b", "ignored")}})
		answers(t, r, err, "a")
	})
}

// TestBatchPanicWithNil: recover sees nothing of it where the program asks for the old
// behaviour of panic(nil), and it must not look like success.
func TestBatchPanicWithNil(t *testing.T) {
	t.Setenv("GODEBUG", "panicnil=1")
	h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error {
		panic(any(nil))
	}, newQuiet().with()...)
	r, err := h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{message("a", "")}})
	nothingSucceeded(t, r, err, "a")
}

// TestBatchLocatesWrappedKeyErrors: the record is named also where the key function has
// put words around the error.
func TestBatchLocatesWrappedKeyErrors(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		q, tr := newQuiet(), &trace{}
		mine := &lock.KeyError{Field: "body", Reason: "is empty"}
		wrapped := fmt.Errorf("tenant 7: %w", mine)
		seen := map[string]error{}
		see := middleware.Observe(func(_ context.Context, o lock.Observation) {
			if e, ok := o.Err.(*lock.KeyError); ok {
				seen[e.Field] = e
			}
		})
		key := func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
			switch m.Body {
			case "direct":
				return lock.Key{}, mine
			case "wrapped":
				return lock.Key{}, wrapped
			case "nil":
				return lock.Key{}, (*lock.KeyError)(nil)
			}
			return keyfuncs.SQSMessage(ctx, m)
		}
		h := middleware.EachSQSMessage(key, tr.sqs, append(q.with(), see, middleware.Concurrency(1))...)
		r, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{message("a", ""), message("b", "direct"), message("c", "wrapped"), message("d", "nil")}})
		answers(t, r, err, "b", "c", "d")
		for _, field := range []string{"Records[1].body", "Records[2].body", "event"} {
			if seen[field] == nil {
				t.Errorf("%s is not named in %v", field, seen)
			}
		}
		if err := seen["Records[2].body"]; !errors.Is(err, wrapped) || !strings.Contains(fmt.Sprint(err), "tenant 7") {
			t.Errorf("%v has lost what the key function added", err)
		}
		if mine.Field != "body" {
			t.Errorf("the caller's error became %+v", mine)
		}
	})
}
