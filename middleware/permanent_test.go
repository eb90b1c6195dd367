package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestPermanent shows that a permanent error is seen through, and what Lambda
// reports.
func TestPermanent(t *testing.T) {
	t.Parallel()
	err := middleware.Permanent(fmt.Errorf("order 7: %w", errRecord))
	var permanent *middleware.PermanentError
	if !errors.Is(err, errRecord) || !errors.As(fmt.Errorf("wrapped: %w", err), &permanent) || permanent.Error() != "order 7: the record is bad" {
		t.Errorf("%#v", err)
	}
	if middleware.Permanent(nil) != nil {
		t.Error("success is a permanent error")
	}
	out, invokeErr := platform(t, "permanent error", true).Invoke(t.Context(), locallambda.Invocation{Payload: []byte(`{"id":"1"}`)})
	if invokeErr != nil || out.ErrorType != "PermanentError" || out.ErrorMessage != "code 7" {
		t.Errorf("Lambda gets %s %q, %v", out.ErrorType, out.ErrorMessage, invokeErr)
	}
}

// TestPermanentWithoutDestination shows that a permanent error which nothing
// moves fails the record, and that one warning says what is missing: what this
// source can have.
func TestPermanentWithoutDestination(t *testing.T) {
	t.Parallel()
	var log warnings
	f := newFixture()
	h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(_ context.Context, m events.SQSMessage) error {
		if m.Body == "permanent" {
			return middleware.Permanent(errRecord)
		}
		return errRecord
	}, f.options(log.option())...)
	for i, does := range []string{"fails", "permanent", "permanent"} {
		if r, err := h(t.Context(), sqsBatch(message("a", does))); len(r.BatchItemFailures) != 1 || !errors.Is(err, errRecord) {
			t.Errorf("%v, %v", r, err)
		}
		said := slices.DeleteFunc(log.lines(), func(l string) bool { return strings.Contains(l, "handler_failed") })
		if len(said) != min(i, 1) || i > 0 && !(strings.Contains(said[0], "OnFailed") && strings.Contains(said[0], "redelivery.SQS")) {
			t.Errorf("after %q: logged %q", does, said)
		}
	}
	var other warnings
	topic := middleware.EachSNSRecord(keyfuncs.SNSRecord, func(context.Context, events.SNSEventRecord) error { return middleware.Permanent(errRecord) }, newFixture().options(other.option())...)
	err := topic(t.Context(), snsBatch("a"))
	if said := strings.Join(other.lines(), "\n"); !errors.Is(err, errRecord) || !strings.Contains(said, "OnFailed") || strings.Contains(said, "redelivery.SQS") {
		t.Errorf("another source: %v, logged %s", err, said)
	}
	f.forget()
	r, err := h(t.Context(), sqsBatch(inGroup("x", message("x1", "permanent")), inGroup("x", message("x2", ""))))
	wantAllReturned(t, r, err, "x1", "x2")
	if n := f.count(middleware.OutcomeHandlerFailed); n != 1 {
		t.Errorf("in a group: %d failures, want that of the handler: %q", n, f.outcomes())
	}
}

// TestPermanentAroundWhatDidNotRun shows that the function given to Around
// cannot say that a record failed for good if its handler, or a wrapper in it,
// did not run for a reason that is not in the record.
func TestPermanentAroundWhatDidNotRun(t *testing.T) {
	const body = `{"id":"a","item":1}`
	key := func(_ context.Context, o order) (lock.Key, error) {
		return lock.Key{Name: o.ID, Event: o.ID, Payload: fmt.Sprint(o.Item)}, nil
	}
	for name, c := range map[string]struct {
		before    func(t *testing.T, f, inside *fixture)
		body      string
		is        func(error) bool
		permanent bool
	}{
		"held":                    {func(t *testing.T, f, _ *fixture) { f.acquireElsewhere(t, lock.Key{Name: "a"}) }, body, isA[*lock.HeldError], false},
		"held inside":             {func(t *testing.T, _, in *fixture) { in.acquireElsewhere(t, lock.Key{Name: "a"}) }, body, isA[*lock.HeldError], false},
		"the store failed":        {func(_ *testing.T, f, _ *fixture) { f.faulty.Always(fault.Acquire, fault.DropBefore) }, body, isA[*lock.StoreError], false},
		"the store failed inside": {func(_ *testing.T, _, in *fixture) { in.faulty.Always(fault.Acquire, fault.DropBefore) }, body, isA[*lock.StoreError], false},
		"refused inside":          {func(_ *testing.T, _, in *fixture) { in.faulty.Always(fault.Acquire, fault.Deny) }, body, isA[*lock.StoreError], false},
		"refused":                 {func(_ *testing.T, f, _ *fixture) { f.faulty.Always(fault.Acquire, fault.Deny) }, body, isA[*lock.StoreError], false},
		"another payload inside": {func(t *testing.T, _, in *fixture) {
			expect.OK(t, in.acquireElsewhere(t, lock.Key{Name: "a", Event: "a", Payload: "2"}).Complete())
		}, body, isA[*lock.PayloadMismatchError], true},
		"late inside": {nil, `{"id":"a","item":29}`, isA[*lock.DeadlineError], false},
		"malformed":   {nil, "{", isA[*lock.NoKeyError], true},
		"another payload": {func(t *testing.T, f, _ *fixture) {
			expect.OK(t, f.acquireElsewhere(t, lock.Key{Name: "a", Event: "a", Payload: "2"}).Complete())
		}, body, isA[*lock.PayloadMismatchError], true},
		"completed": {func(t *testing.T, f, _ *fixture) {
			expect.OK(t, f.acquireElsewhere(t, lock.Key{Name: "a", Event: "a", Payload: "1"}).Complete())
		}, body, isA[*lock.CompletedError], true},
	} {
		for does, ends := range map[string]func(error) error{
			"returns": middleware.Permanent,
			"panics":  func(err error) error { panic(middleware.Permanent(err)) },
		} {
			t.Run(name+", "+does, func(t *testing.T) {
				underDeadline(t, func(t *testing.T, ctx context.Context) {
					f, in := newFixture(), newFixture()
					if c.before != nil {
						c.before(t, f, in)
					}
					var told error
					inside := middleware.WithLock(key, handles[order], in.options()...)
					h := middleware.EachSQSBody(key, func(ctx context.Context, o order) error {
						time.Sleep(time.Duration(o.Item) * time.Second)
						return inside(ctx, o)
					}, f.options(
						middleware.OnCompleted(middleware.Fail),
						middleware.Around(func(ctx context.Context, _ events.SQSMessage, next next) error { return ends(next(ctx)) }),
						middleware.OnFailed(func(_ context.Context, fs failed) { told = fs[0].Err }),
					)...)
					_, _ = h(ctx, queueBatch(c.body))
					if !c.is(told) || errors.As(told, new(*middleware.PermanentError)) != c.permanent {
						t.Errorf("the record failed with %v, permanent: %v", told, !c.permanent)
					}
				})
			})
		}
	}
}

func isA[E error](err error) bool { return errors.As(err, new(E)) }
