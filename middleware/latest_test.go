package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// ofItem gives all orders of an item one name, and each its own event.
func ofItem(_ context.Context, o order) (lock.Key, error) {
	return lock.Key{Name: fmt.Sprint("item ", o.Item), Event: o.ID}, nil
}

// rebuild is a handler in one of the forms in which others may rely on its
// runs. It calls run.
type rebuild func(run func(context.Context) error, opts ...middleware.Option) func(context.Context, order) error

var rebuilds = map[string]rebuild{
	"an event": func(run func(context.Context) error, opts ...middleware.Option) func(context.Context, order) error {
		return middleware.Latest(ofItem, func(ctx context.Context, _ order) error { return run(ctx) }, opts...)
	},
	"records": func(run func(context.Context) error, opts ...middleware.Option) func(context.Context, order) error {
		key := func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
			return lock.Key{Name: "item", Event: m.MessageId}, nil
		}
		h := middleware.EachSQSMessage(key, func(ctx context.Context, _ events.SQSMessage) error { return run(ctx) }, append(opts, middleware.OnlyLatest())...)
		return func(ctx context.Context, o order) error {
			answer, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{{MessageId: o.ID, EventSource: "aws:sqs"}}})
			if err == nil && len(answer.BatchItemFailures) > 0 {
				err = errors.New("the message comes back")
			}
			return err
		}
	},
}

// TestLatest sends three events during a run: they are acknowledged, and the
// handler runs once more. Another delivery of the run's own event is not. If
// the last run fails, or there is no time for it, the event of the holder comes
// back, and nothing is completed.
func TestLatest(t *testing.T) {
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
					h = wrap(func(ctx context.Context) error {
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
					}, f.options()...)
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

// TestLatestRefuses lists what does not fit Latest and OnlyLatest.
func TestLatestRefuses(t *testing.T) {
	t.Parallel()
	cannotMark := struct{ driver.Store }{memstore.New()}
	for want, option := range map[string]middleware.Option{
		"OnHeld has no say":    middleware.OnHeld(middleware.Fail),
		"leave OnHeld out":     middleware.OnHeld(middleware.Wait(time.Second)),
		"leave FailOpen out":   middleware.FailOpen(),
		"AcrossTenants is not": middleware.AcrossTenants(),
		"can mark a row":       middleware.Store(cannotMark),
		"needs a handler with": middleware.OnCompleted(middleware.Replay),
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			opts := newFixture().options(option)
			wantPanic(t, func() { middleware.Latest(ofItem, handles[order], opts...) }, want)
			wantPanic(t, func() {
				middleware.EachSQSBody(ofItem, handles[order], append(opts, middleware.OnlyLatest())...)
			}, want)
		})
	}
	for want, use := range map[string]func(){
		"OnlyLatest, Around and OnFailed are for": func() { middleware.Latest(ofItem, handles[order], middleware.OnlyLatest()) },
		"the key function is nil":                 func() { middleware.Latest(nil, handles[order]) },
		"the handler is nil":                      func() { middleware.Latest[order](ofItem, nil) },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			wantPanic(t, use, want)
		})
	}
}

// TestKeyOfOneRecord shows that the key function gets the record as it came.
func TestKeyOfOneRecord(t *testing.T) {
	t.Parallel()
	byStream := func(_ context.Context, r events.KinesisEventRecord) (lock.Key, error) {
		return lock.Key{Name: r.EventSourceArn}, nil
	}
	h := middleware.WithLock(byStream, handles[events.KinesisEventRecord], newFixture().options()...)
	expect.OK(t, h(t.Context(), events.KinesisEventRecord{EventID: "shard:1", EventSourceArn: "arn"}))
}

// TestLatestOfOneRecord shows that a key function for records does not take a
// whole event for one.
func TestLatestOfOneRecord(t *testing.T) {
	t.Parallel()
	var e *lock.NoKeyError
	h := middleware.Latest(keyfuncs.SQSMessage, handles[events.SQSMessage], newFixture().options()...)
	if err := h(t.Context(), events.SQSMessage{}); !errors.As(err, &e) || e.Field != "event" {
		t.Errorf("got %v", err)
	}
}

// TestCompletedUnderLatest shows what becomes of an event that was completed,
// and of the error of a lock inside the handler that looks the same.
func TestCompletedUnderLatest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opts    []middleware.Option
		fails   error // the handler
		first   error
		another error
	}{
		"skipped":      {nil, nil, nil, nil},
		"fails":        {[]middleware.Option{middleware.OnCompleted(middleware.Fail)}, nil, nil, lock.ErrCompleted},
		"the inner is": {nil, &lock.CompletedError{}, lock.ErrCompleted, lock.ErrCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := middleware.Latest(ofItem, func(context.Context, order) error { return c.fails }, newFixture().options(c.opts...)...)
			for i, want := range []error{c.first, c.another} {
				if err := h(t.Context(), order{ID: "first"}); !errors.Is(err, want) {
					t.Errorf("delivery %d: %v, want %v", i, err, want)
				}
			}
		})
	}
}
