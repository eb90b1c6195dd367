package middleware_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestCoalescedBeforeAFailedCompletion coalesces an event during a run that
// succeeds but whose completion is not confirmed: the event of the holder must
// not be acknowledged, because nobody else runs for the coalesced one.
func TestCoalescedBeforeAFailedCompletion(t *testing.T) { // F7
	t.Parallel()
	for form, wrap := range rebuilds {
		for name, spoil := range map[string]func(*testing.T, *fixture){
			"the store is down": func(_ *testing.T, f *fixture) { f.faulty.Always(fault.Release, fault.DropBefore) },
			"an operator has released the lock": func(t *testing.T, f *fixture) {
				for row := range f.faulty.Store.(driver.Inspector).Rows(t.Context(), "") {
					if _, ok, err := f.faulty.Store.Settle(t.Context(), &driver.Settlement{Name: row.Name, Token: row.Token, DeleteAfter: row.DeleteAfter}); !ok {
						t.Fatal(err)
					}
				}
			},
		} {
			t.Run(form+", "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := newFixture()
					runs := 0
					var h func(context.Context, order) error
					h = wrap(t, func(context.Context) error {
						if runs++; runs == 1 {
							if err := h(t.Context(), order{ID: "other"}); err != nil {
								t.Error(err)
							}
							spoil(t, f)
						}
						return nil
					}, f.options(middleware.OnHeld(middleware.Coalesce))...)
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					if err := h(ctx, order{ID: "first"}); err == nil {
						t.Error("the event of the holder was acknowledged")
					}
					f.faulty.Always(fault.Release, fault.None)
					time.Sleep(time.Minute)
					if err := h(t.Context(), order{ID: "first"}); err != nil || runs != 2 {
						t.Errorf("%d runs, %v", runs, err)
					}
				})
			})
		}
	}
}

// TestCoalescedDuringAnyResult coalesces an event during a run whose result
// over HTTP would say that it failed: the handler runs once more all the same.
func TestCoalescedDuringAnyResult(t *testing.T) {
	t.Parallel()
	const unavailable = `{"statusCode":503}`
	for form, wrap := range map[string]rebuild{
		"a field statusCode": func(_ *testing.T, run func(context.Context) error, opts ...middleware.Option) func(context.Context, order) error {
			h := middleware.WithLock(ofItem, func(ctx context.Context, _ order) (any, error) { return map[string]int{"statusCode": 503}, run(ctx) }, opts...)
			return func(ctx context.Context, o order) error {
				_, err := h(ctx, o)
				return err
			}
		},
		"bytes": func(t *testing.T, run func(context.Context) error, opts ...middleware.Option) func(context.Context, order) error {
			h := middleware.WithLock(ofItem, lambda.Handler(handlerFunc(func(ctx context.Context, _ []byte) ([]byte, error) { return []byte(unavailable), run(ctx) })), opts...)
			return func(ctx context.Context, o order) error {
				_, err := h.Invoke(ctx, toJSON(t, o))
				return err
			}
		},
	} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture()
				runs := 0
				var h func(context.Context, order) error
				h = wrap(t, func(context.Context) error {
					if runs++; runs == 1 {
						return h(t.Context(), order{ID: "other"})
					}
					return nil
				}, f.options(middleware.OnHeld(middleware.Coalesce))...)
				if err := h(t.Context(), order{ID: "first"}); err != nil || runs != 2 {
					t.Errorf("%d runs, %v", runs, err)
				}
			})
		})
	}
}

// TestCoalesceRefusesStreams shows that a stream which the result's type hides
// fails the event, and is closed.
func TestCoalesceRefusesStreams(t *testing.T) {
	t.Parallel()
	for name, stream := range map[string]func(io.Reader) any{
		"a reader":             func(body io.Reader) any { return body },
		"a streaming response": func(body io.Reader) any { return &events.LambdaFunctionURLStreamingResponse{Body: body} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture()
				body := &body{Reader: strings.NewReader("text")}
				h := middleware.WithLock(ofItem, func(context.Context, order) (any, error) { return stream(body), nil }, f.options(middleware.OnHeld(middleware.Coalesce))...)
				_, err := h(t.Context(), order{ID: "first"})
				if !errors.As(err, new(*lock.ConfigError)) || !body.closed {
					t.Errorf("closed %v, %v", body.closed, err)
				}
				f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased)
			})
		})
	}
}

// TestOwedRecordIsReported shows that a record which is returned although its
// handler succeeded can be found in the log.
func TestOwedRecordIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		var h func(context.Context, order) error
		h = rebuilds["records"](t, func(context.Context) error {
			time.Sleep(6 * time.Second) // of 10
			return h(t.Context(), order{ID: "other"})
		}, f.options(middleware.OnHeld(middleware.Coalesce))...)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := h(ctx, order{ID: "first"}); err == nil {
			t.Error("the message does not come back")
		}
		f.want(t, lock.OutcomeAcquired, lock.OutcomeCoalesced, lock.OutcomeOwed, lock.OutcomeReleased, middleware.OutcomeHandlerFailed)
	})
}

// TestOwedInsideARecordIsReportedOnce shows that a record whose handler returns
// the error of a wrapper inside it counts as one failure.
func TestOwedInsideARecordIsReportedOnce(t *testing.T) {
	t.Parallel()
	f := newFixture()
	h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error {
		return &lock.OwedError{Key: lock.Key{Name: "item"}}
	}, f.options()...)
	if _, err := h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "1", EventSource: "aws:sqs"}}}); err == nil {
		t.Error("the message does not come back")
	}
	f.want(t, lock.OutcomeAcquired, middleware.OutcomeHandlerFailed, lock.OutcomeReleased)
}

// TestCoalesceRefusesSeveralLocks shows that the mistake is found before an
// event comes.
func TestCoalesceRefusesSeveralLocks(t *testing.T) {
	t.Parallel()
	wantPanic(t, func() {
		middleware.WithLocks(keyfuncs.All(keyfuncs.Func[order](ofItem)), func(context.Context, order) error { return nil }, newFixture().options(middleware.OnHeld(middleware.Coalesce))...)
	}, "OnHeld(Coalesce)", "one lock")
}
