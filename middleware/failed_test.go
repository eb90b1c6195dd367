package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// failed are the messages that a function given to OnFailed gets.
type failed = []*middleware.Failed[events.SQSMessage]

// TestOnFailed shows that the function gets the messages that would be
// returned, once and in the order of the batch, and that those whose error it
// clears are acknowledged.
func TestOnFailed(t *testing.T) {
	group := func(id, does string) events.SQSMessage { return inGroup("x", message(id, does)) }
	for name, c := range map[string]struct {
		batch    []events.SQSMessage
		told     []string
		on       func(f failed)
		returned []string
	}{
		"nothing failed": {
			batch: []events.SQSMessage{message("a", ""), message("b", "")},
			on:    func(failed) {},
		},
		"left alone": {
			batch: []events.SQSMessage{message("a", "fails"), message("b", ""), message("c", "panics")},
			told:  []string{"a", "c"}, on: func(failed) {}, returned: []string{"a", "c"},
		},
		"one acknowledged": {
			batch: []events.SQSMessage{message("a", "fails"), message("b", ""), message("c", "fails")},
			told:  []string{"a", "c"}, on: func(f failed) { f[1].Err = nil }, returned: []string{"a"},
		},
		"all acknowledged": {
			batch: []events.SQSMessage{message("a", "fails"), message("b", "fails")},
			told:  []string{"a", "b"}, on: func(f failed) { f[0].Err, f[1].Err = nil, nil },
		},
		"in another order": {
			batch: []events.SQSMessage{message("a", "fails"), message("b", "fails"), message("c", "")},
			told:  []string{"a", "b"}, on: func(f failed) { slices.Reverse(f); f[0].Err = nil }, returned: []string{"a"},
		},
		"forgotten": {
			batch: []events.SQSMessage{message("a", "fails"), message("b", "")},
			told:  []string{"a"}, on: func(f failed) { f[0] = nil }, returned: []string{"a"},
		},
		"not begun": {
			batch: []events.SQSMessage{group("x1", "fails"), group("x2", ""), group("x3", "")},
			told:  []string{"x1", "x2", "x3"}, on: func(f failed) { f[0].Err = nil }, returned: []string{"x2", "x3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			underDeadline(t, func(t *testing.T, ctx context.Context) {
				var told []string
				calls := 0
				h := middleware.EachSQSMessage(keyfuncs.SQSMessage, (&runLog{}).sqs, newFixture().options(middleware.OnFailed(func(_ context.Context, f failed) {
					calls++
					for _, m := range f {
						told = append(told, m.Record.MessageId)
					}
					c.on(f)
				}))...)
				r, err := h(ctx, sqsBatch(c.batch...))
				wantReturned(t, r, err, c.returned...)
				if !slices.Equal(told, c.told) || calls != min(len(c.told), 1) {
					t.Errorf("told of %q in %d calls, want %q", told, calls, c.told)
				}
			})
		})
	}
}

// TestOnFailedOfOneName shows that records of one name, which wait for each
// other though they have no order, are told of together at the end.
func TestOnFailedOfOneName(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		var told []int
		key := keyfuncs.EventFrom(staticOf[events.SQSMessage], keyfuncs.SQSMessage)
		h := middleware.EachSQSMessage(key, func(context.Context, events.SQSMessage) error { return middleware.Permanent(errRecord) },
			newFixture().options(middleware.OnFailed(func(_ context.Context, f failed) { told = append(told, len(f)) }))...)
		_, _ = h(ctx, sqsBatch(message("a", ""), message("b", "")))
		if !slices.Equal(told, []int{2}) {
			t.Errorf("told of %v", told)
		}
	})
}

// TestOnFailedSaysWhen shows that the function learns when each message had
// failed, although the batch goes on.
func TestOnFailedSaysWhen(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		began := time.Now()
		var ended []time.Duration
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(_ context.Context, m events.SQSMessage) error {
			d, err := time.ParseDuration(m.Body)
			time.Sleep(d)
			return errors.Join(err, errRecord)
		}, newFixture().options(middleware.OnFailed(func(_ context.Context, f failed) {
			for _, m := range f {
				ended = append(ended, m.Ended.Sub(began))
			}
		}))...)
		_, _ = h(ctx, sqsBatch(message("a", "5s"), message("b", "1s")))
		if want := []time.Duration{5 * time.Second, time.Second}; !slices.Equal(ended, want) {
			t.Errorf("failed after %v, want %v", ended, want)
		}
	})
}

// TestOnFailedKnowsTheClaims: what package redelivery learns of the claim of a
// message that failed is not that of one that succeeded.
func TestOnFailedKnowsTheClaims(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		key := func(ctx context.Context, m events.SQSMessage) (lock.Key, error) {
			if m.MessageId == "b" {
				return lock.Key{}, errRecord
			}
			return keyfuncs.SQSMessage(ctx, m)
		}
		var began []bool
		h := middleware.EachSQSMessage(key, (&runLog{}).sqs, newFixture().options(middleware.OnFailed(func(ctx context.Context, f failed) {
			for i := range f {
				began = append(began, !invocation.FailedClaimOf(ctx, i).Began.IsZero())
			}
		}))...)
		_, _ = h(ctx, sqsBatch(message("a", ""), message("b", ""), message("c", "fails")))
		if want := []bool{false, true}; !slices.Equal(began, want) {
			t.Errorf("began: %v, want %v", began, want)
		}
	})
}

// TestOnFailedOfAnySource shows that a record of a stream and of a source that
// takes no partial answer can be acknowledged, too.
func TestOnFailedOfAnySource(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		shard := middleware.EachKinesisRecord(keyfuncs.KinesisRecord, (&runLog{}).kinesis, newFixture().options(middleware.OnFailed(func(_ context.Context, f []*middleware.Failed[events.KinesisEventRecord]) {
			f[0].Err = nil // what comes after it was not begun
		}))...)
		r, err := shard(ctx, kinesisBatch(map[string]string{"a2": "fails"}))
		if want := (events.KinesisBatchItemFailure{ItemIdentifier: "103"}); err != nil || len(r.BatchItemFailures) != 3 || r.BatchItemFailures[0] != want {
			t.Errorf("%v, %v", r, err)
		}
		topic := middleware.EachSNSRecord(keyfuncs.SNSRecord, func(context.Context, events.SNSEventRecord) error { return errRecord },
			newFixture().options(middleware.OnFailed(func(_ context.Context, f []*middleware.Failed[events.SNSEventRecord]) { f[0].Err = nil }))...)
		expect.OK(t, topic(ctx, events.SNSEvent{Records: []events.SNSEventRecord{{SNS: events.SNSEntity{MessageID: "a"}}}}))
	})
}

// TestOnFailedThatPanics shows that a panic is reported and changes nothing but
// what was acknowledged before it, even if the observer panics as well.
func TestOnFailedThatPanics(t *testing.T) { // F48
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f := newFixture()
		observe := middleware.Observe(func(_ context.Context, o lock.Observation) {
			if errors.As(o.Err, new(*middleware.PanicError)) {
				panic("observer")
			}
		})
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, (&runLog{}).sqs, f.options(observe, middleware.OnFailed(func(_ context.Context, f failed) {
			f[0].Err = nil
			panic("on failed")
		}))...)
		r, err := h(ctx, sqsBatch(message("a", "fails"), message("b", "fails"), message("c", "")))
		wantReturned(t, r, err, "b")
		reported := f.of(middleware.OutcomeHandlerFailed)
		if last := reported[len(reported)-1]; len(reported) != 3 || !strings.Contains(last.Err.Error(), "on failed") {
			t.Errorf("observed %q", f.outcomes())
		}
	})
}

// TestOnFailedHasTimeToAnswer shows until when the function may take, whatever
// the timeout of the Lambda function.
func TestOnFailedHasTimeToAnswer(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]time.Duration{
		30 * time.Second:       100 * time.Millisecond,
		200 * time.Millisecond: 95 * time.Millisecond, // half of what is left after the handler
	} {
		t.Run(fmt.Sprint(timeout), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				deadline, _ := ctx.Deadline()
				var left time.Duration
				h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error {
					time.Sleep(10 * time.Millisecond)
					return errRecord
				}, newFixture().options(middleware.OnFailed(func(ctx context.Context, _ failed) {
					<-ctx.Done()
					left = time.Until(deadline)
				}))...)
				_, _ = h(ctx, sqsBatch(message("a", "")))
				if left != want {
					t.Errorf("%v are left to answer, want %v", left, want)
				}
			})
		})
	}
}

// TestOnFailedWithoutDeadline shows that the function's context is as good
// outside Lambda, and ends with the function.
func TestOnFailedWithoutDeadline(t *testing.T) {
	t.Parallel()
	var given context.Context
	h := middleware.EachSQSMessage(keyfuncs.SQSMessage, (&runLog{}).sqs, newFixture().options(middleware.OnFailed(func(ctx context.Context, f failed) {
		given, f[0].Err = ctx, ctx.Err()
	}))...)
	r, err := h(t.Context(), sqsBatch(message("a", "fails")))
	wantReturned(t, r, err)
	if given.Err() == nil {
		t.Error("the context has not ended")
	}
}

// TestWrongOnFailed shows that OnFailed for other records, or where there are
// none, panics when the handler is wrapped.
func TestWrongOnFailed(t *testing.T) {
	t.Parallel()
	opts := newFixture().options
	on := middleware.OnFailed(func(context.Context, failed) {})
	for name, c := range map[string]struct {
		use    func()
		within string
	}{
		"nil": {func() { middleware.OnFailed[order](nil) }, "OnFailed(nil)"},
		"other records": {func() {
			middleware.EachSNSRecord(keyfuncs.SNSRecord, func(context.Context, events.SNSEventRecord) error { return nil }, opts(on)...)
		}, "for events.SQSMessage, but each record is of type events.SNSEventRecord"},
		"whole events": {func() {
			middleware.WithLock(byOrder, func(context.Context, order) error { return nil }, opts(on)...)
		}, "OnFailed are for handlers of single records"},
	} {
		t.Run(name, func(t *testing.T) { wantPanic(t, c.use, c.within) })
	}
}
