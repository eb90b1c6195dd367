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

// TestBatchAllFail shows that nothing is completed and no lock is left if every
// record failed, so that a retry runs all of them.
func TestBatchAllFail(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, runs.sqs, f.options()...)
		r, err := h(ctx, sqsBatch(message("a", "fails"), message("b", "panics"), message("c", "exits")))
		wantAllReturned(t, r, err, "a", "b", "c")
		if f.count(middleware.OutcomeHandlerFailed) != 3 || f.count(lock.OutcomeReleased) != 3 {
			t.Errorf("observed %q", f.outcomes())
		}
		r, err = h(ctx, sqsBatch(message("a", ""), message("b", ""), message("c", "")))
		wantReturned(t, r, err)
		if len(runs.began) != 6 {
			t.Errorf("ran %q", runs.began)
		}
	})
}

// TestBatchOfWhichNothingSucceeded shows for every source with a partial answer
// that the batch is an error if every record failed, and only then.
func TestBatchOfWhichNothingSucceeded(t *testing.T) {
	t.Run("SQS FIFO", func(t *testing.T) {
		underDeadline(t, func(t *testing.T, ctx context.Context) {
			f, runs := newFixture(), &runLog{}
			h := middleware.EachSQSMessage(keyfuncs.SQSFIFOMessage, runs.sqs, f.options()...)
			r, err := h(ctx, sqsBatch(
				inGroup("x", message("x1", "fails")), inGroup("x", message("x2", "")), inGroup("y", message("y1", "fails")),
			))
			wantAllReturned(t, r, err, "x1", "x2", "y1") // x2 was not begun
			oneSucceeds := sqsBatch(inGroup("x", message("x1", "")), inGroup("y", message("y1", "fails")))
			r, err = h(ctx, oneSucceeds)
			wantReturned(t, r, err, "y1")
			r, err = h(ctx, oneSucceeds) // x1 is skipped now, which is not a failure
			wantReturned(t, r, err, "y1")
		})
	})
	t.Run("Kinesis", func(t *testing.T) {
		underDeadline(t, func(t *testing.T, ctx context.Context) {
			f, runs := newFixture(), &runLog{}
			h := middleware.EachKinesisRecord(keyfuncs.KinesisRecord, runs.kinesis, f.options()...)
			r, err := h(ctx, kinesisBatch(map[string]string{"a1": "fails"}))
			wantAllReturned(t, r, err, "100", "101", "102", "103", "104", "105")
		})
	})
	t.Run("DynamoDB", func(t *testing.T) {
		underDeadline(t, func(t *testing.T, ctx context.Context) {
			f, runs := newFixture(), &runLog{}
			h := middleware.EachDynamoDBRecord(keyfuncs.DynamoDBRecord, runs.dynamoDB, f.options()...)
			r, err := h(ctx, dynamoDBBatch("fails", "fails", "fails"))
			wantAllReturned(t, r, err, "0", "1", "2")
		})
	})
	t.Run("held fails, ignored does not", func(t *testing.T) {
		underDeadline(t, func(t *testing.T, ctx context.Context) {
			f, runs := newFixture(), &runLog{}
			f.acquireElsewhere(t, lock.Key{Name: "sqs/a"})
			h := middleware.EachSQSMessage(func(ctx context.Context, m events.SQSMessage) (lock.Key, error) {
				if m.Body == "ignored" {
					return lock.Key{}, keyfuncs.ErrIgnore
				}
				return keyfuncs.SQSMessage(ctx, m)
			}, runs.sqs, f.options()...)
			r, err := h(ctx, sqsBatch(message("a", "")))
			wantAllReturned(t, r, err, "a")
			if !errors.Is(err, lock.ErrHeld) {
				t.Errorf("%v does not say why", err)
			}
			r, err = h(ctx, sqsBatch(message("a", ""), message("b", "ignored")))
			wantReturned(t, r, err, "a")
		})
	})
}

// TestBatchPanicWithNil shows that panic(nil) does not look like success in a
// program that asks for its old behaviour, in which recover returns nil.
func TestBatchPanicWithNil(t *testing.T) {
	t.Setenv("GODEBUG", "panicnil=1")
	h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error {
		panic(any(nil))
	}, newFixture().options()...)
	r, err := h(t.Context(), sqsBatch(message("a", "")))
	wantAllReturned(t, r, err, "a")
}

// TestBatchLocatesWrappedKeyErrors shows that the observation names the record
// also if the key function has wrapped the error, and that the key function's
// error is not changed.
func TestBatchLocatesWrappedKeyErrors(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		mine := &lock.NoKeyError{Field: "body", Reason: "is empty"}
		wrapped := fmt.Errorf("tenant 7: %w", mine)
		key := func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
			switch m.Body {
			case "direct":
				return lock.Key{}, mine
			case "wrapped":
				return lock.Key{}, wrapped
			case "nil":
				return lock.Key{}, (*lock.NoKeyError)(nil)
			}
			return keyfuncs.SQSMessage(ctx, m)
		}
		h := middleware.EachSQSMessage(key, runs.sqs, f.options(middleware.Concurrency(1))...)
		r, err := h(ctx, sqsBatch(message("a", ""), message("b", "direct"), message("c", "wrapped"), message("d", "nil")))
		wantReturned(t, r, err, "b", "c", "d")
		seen := map[string]error{}
		for _, s := range f.of(lock.OutcomeRefused) {
			e := s.Err.(*lock.NoKeyError)
			seen[e.Field] = e
		}
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
