package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// ofItem gives all orders of an item one name, and each its own event.
func ofItem(_ context.Context, o order) (lock.Key, error) {
	return lock.Key{Name: fmt.Sprint("item ", o.Item), Event: o.ID}, nil
}

// rebuild is a handler in one of the forms that middleware wraps. It calls run.
type rebuild func(t *testing.T, run func(context.Context) error, opts ...middleware.Option) func(context.Context, order) error

var rebuilds = map[string]rebuild{
	"no result": func(_ *testing.T, run func(context.Context) error, opts ...middleware.Option) func(context.Context, order) error {
		return middleware.WithLock(ofItem, func(ctx context.Context, _ order) error { return run(ctx) }, opts...)
	},
	"a result": func(t *testing.T, run func(context.Context) error, opts ...middleware.Option) func(context.Context, order) error {
		runs := 0
		h := middleware.WithLock(ofItem, func(ctx context.Context, _ order) (int, error) {
			runs++
			n := runs
			return n, run(ctx)
		}, opts...)
		return func(ctx context.Context, o order) error {
			n, err := h(ctx, o)
			if err == nil && n != 0 && n != runs {
				t.Errorf("the result is that of run %d of %d", n, runs)
			}
			return err
		}
	},
	"bytes": func(_ *testing.T, run func(context.Context) error, opts ...middleware.Option) func(context.Context, order) error {
		h := middleware.WithLock(ofItem, lambda.Handler(handlerFunc(func(ctx context.Context, _ []byte) ([]byte, error) { return []byte("1"), run(ctx) })), opts...)
		return func(ctx context.Context, o order) error {
			payload, err := json.Marshal(o)
			if err != nil {
				return err
			}
			_, err = h.Invoke(ctx, payload)
			return err
		}
	},
	"records": func(_ *testing.T, run func(context.Context) error, opts ...middleware.Option) func(context.Context, order) error {
		key := func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
			return lock.Key{Name: "item", Event: m.MessageId}, nil
		}
		h := middleware.EachSQSMessage(key, func(ctx context.Context, _ events.SQSMessage) error { return run(ctx) }, opts...)
		return func(ctx context.Context, o order) error {
			answer, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{{MessageId: o.ID, EventSource: "aws:sqs"}}})
			if err == nil && len(answer.BatchItemFailures) > 0 {
				err = errors.New("the message comes back")
			}
			return err
		}
	},
}

type handlerFunc func(context.Context, []byte) ([]byte, error)

func (f handlerFunc) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return f(ctx, payload)
}

// TestCoalesce sends three events during a run: they are acknowledged, and the
// handler runs once more. Another delivery of the run's own event is not. If
// the last run fails, or there is no time for it, the event of the holder comes
// back, and nothing is completed.
func TestCoalesce(t *testing.T) {
	t.Parallel()
	for form, wrap := range rebuilds {
		for name, c := range map[string]struct {
			takes time.Duration // of 10 s
			fails int           // which run; 0: none
			runs  int
			ok    bool
		}{
			"once more":      {time.Second, 0, 2, true},
			"the owed fails": {time.Second, 2, 2, false},
			"no time left":   {6 * time.Second, 0, 1, false},
		} {
			t.Run(form+", "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := newFixture()
					runs := 0
					var h func(context.Context, order) error
					h = wrap(t, func(ctx context.Context) error {
						time.Sleep(c.takes)
						if runs++; runs == 1 {
							for i := range 3 {
								expect.OK(t, h(t.Context(), order{ID: fmt.Sprint("other ", i)}))
							}
							if err := h(t.Context(), order{ID: "first"}); err == nil {
								t.Error("another delivery of the holder's own event is acknowledged")
							}
						}
						if runs == c.fails {
							return errors.New("failed")
						}
						return nil
					}, f.options(middleware.OnHeld(middleware.Coalesce))...)
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					if err := h(ctx, order{ID: "first"}); (err == nil) != c.ok || runs != c.runs {
						t.Errorf("%d runs, %v", runs, err)
					}
					expect.OK(t, h(t.Context(), order{ID: "first"}))
					if again := runs > c.runs; again == c.ok {
						t.Errorf("the first event ran again: %v", again)
					}
				})
			})
		}
	}
}

// TestCoalesceRefusesHandlers lists the handlers and options that Coalesce does
// not fit.
func TestCoalesceRefusesHandlers(t *testing.T) {
	t.Parallel()
	f := newFixture()
	opts := func(more ...middleware.Option) []middleware.Option {
		return f.options(append(more, middleware.OnHeld(middleware.Coalesce))...)
	}
	for want, wrap := range map[string]func(){
		"returns no error": func() { middleware.WithLock(ofItem, func(order) {}, opts()...) },
		"HTTP request": func() {
			middleware.WithLock(keyfuncs.IdempotencyKey[events.APIGatewayProxyRequest], func(events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
				return events.APIGatewayProxyResponse{}, nil
			}, opts()...)
		},
		"CompletedIf": func() {
			middleware.WithLock(ofItem, func(order) (int, error) { return 0, nil }, opts(middleware.CompletedIf(func(int) bool { return false }))...)
		},
		"FailOpen": func() {
			middleware.WithLock(ofItem, func(order) error { return nil }, opts(middleware.FailOpen())...)
		},
		"leave FailOpen out": func() { // of bytes
			middleware.WithLock(ofItem, lambda.Handler(handlerFunc(func(context.Context, []byte) ([]byte, error) { return nil, nil })), opts(middleware.FailOpen())...)
		},
		"is for one holder": func() { middleware.WithLimit(toPartner[order], 2, func(order) error { return nil }, opts()...) },
	} {
		t.Run(want, func(t *testing.T) {
			defer func() {
				if p := fmt.Sprint(recover()); !strings.Contains(p, want) {
					t.Errorf("panicked with %q", p)
				}
			}()
			wrap()
		})
	}
}
