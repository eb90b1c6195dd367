package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
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

// interrupt lets a run of the key's event die.
func (r *fixture) interrupt(t *testing.T, k lock.Key) {
	t.Helper()
	locker := expect.Value(lock.New(r.faulty.Store, &lock.Options{Lease: lock.FixedLease(5 * time.Second), Logger: noLogger, OnInterrupted: lock.FailInterrupted}))(t)
	expect.Value(locker.Acquire(t.Context(), k))(t)
	time.Sleep(6 * time.Second)
}

// door is a way to wrap a handler of an order. It returns a function that
// handles order 7, whose key is {orders 7}, and what Ask gets of the event.
type door func(run func(context.Context) error, ask func(event string) (bool, error), opts []middleware.Option) func(context.Context) error

func isInterrupted(err error) bool { return errors.As(err, new(*lock.InterruptedError)) }

type rawRun func(context.Context) error

func (r rawRun) Invoke(ctx context.Context, _ []byte) ([]byte, error) { return []byte("null"), r(ctx) }

// asksFor is Ask for a function that gets the event as text.
func asksFor[E any](ask func(string) (bool, error), opts []middleware.Option) []middleware.Option {
	if ask == nil {
		return opts
	}
	return append(slices.Clone(opts), middleware.OnInterrupted(middleware.Ask(func(ctx context.Context, e E) (bool, error) {
		if lease, ok := lock.FromContext(ctx); !ok || lease.Fence == 0 {
			return false, fmt.Errorf("asked with the lease %+v, %v", lease, ok)
		}
		if m, ok := any(e).(events.SQSMessage); ok {
			return ask(m.Body)
		}
		b, err := json.Marshal(e)
		if err != nil {
			return false, err
		}
		return ask(string(b))
	})))
}

const order7 = `{"id":"7","item":0}`

var doors = map[string]door{
	"function": func(run func(context.Context) error, ask func(string) (bool, error), opts []middleware.Option) func(context.Context) error {
		h := middleware.WithLock(byOrder, func(ctx context.Context, _ order) error { return run(ctx) }, asksFor[order](ask, opts)...)
		return func(ctx context.Context) error { return h(ctx, order{ID: "7"}) }
	},
	"function of a pointer": func(run func(context.Context) error, ask func(string) (bool, error), opts []middleware.Option) func(context.Context) error {
		h := middleware.WithLock(byOrder, func(ctx context.Context, _ *order) error { return run(ctx) }, asksFor[order](ask, opts)...)
		return func(ctx context.Context) error { return h(ctx, &order{ID: "7"}) }
	},
	"function of JSON": func(run func(context.Context) error, ask func(string) (bool, error), opts []middleware.Option) func(context.Context) error {
		h := middleware.WithLock(byOrder, func(ctx context.Context, _ json.RawMessage) error { return run(ctx) }, asksFor[order](ask, opts)...)
		return func(ctx context.Context) error { return h(ctx, json.RawMessage(order7)) }
	},
	"lambda.Handler": func(run func(context.Context) error, ask func(string) (bool, error), opts []middleware.Option) func(context.Context) error {
		h := middleware.WithLock[order, lambda.Handler](byOrder, rawRun(run), asksFor[order](ask, opts)...)
		return func(ctx context.Context) error {
			_, err := h.Invoke(ctx, []byte(order7))
			return err
		}
	},
	"several locks": func(run func(context.Context) error, ask func(string) (bool, error), opts []middleware.Option) func(context.Context) error {
		h := middleware.WithLocks(keyfuncs.All(byOrder, lockPerOrder), func(ctx context.Context, _ order) error { return run(ctx) }, asksFor[order](ask, opts)...)
		return func(ctx context.Context) error { return h(ctx, order{ID: "7"}) }
	},
	"record": func(run func(context.Context) error, ask func(string) (bool, error), opts []middleware.Option) func(context.Context) error {
		byID := func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
			return lock.Key{Name: "orders", Event: m.MessageId}, nil
		}
		return eachSQSOnce(middleware.EachSQSMessage(byID, func(ctx context.Context, _ events.SQSMessage) error { return run(ctx) }, asksFor[events.SQSMessage](ask, opts)...))
	},
	"body of a record": func(run func(context.Context) error, ask func(string) (bool, error), opts []middleware.Option) func(context.Context) error {
		return eachSQSOnce(middleware.EachSQSBody(byOrder, func(ctx context.Context, _ order) error { return run(ctx) }, asksFor[order](ask, opts)...))
	},
	"detail of an event": func(run func(context.Context) error, ask func(string) (bool, error), opts []middleware.Option) func(context.Context) error {
		h := middleware.WithEventBridgeDetail(byOrder, func(ctx context.Context, _ order) error { return run(ctx) }, asksFor[order](ask, opts)...)
		return func(ctx context.Context) error {
			return h(ctx, events.EventBridgeEvent{ID: "x", Source: "shop", Detail: json.RawMessage(order7)})
		}
	},
}

func eachSQSOnce(h func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		m := message("7", order7)
		_, err := h(ctx, sqsBatch(m))
		return err
	}
}

// TestOnInterrupted: through every door the policy decides about an event whose
// run died, Ask gets the event as the key function does, and an Unknown error
// makes it interrupted.
func TestOnInterrupted(t *testing.T) { // F19
	t.Parallel()
	boom := errors.New("boom")
	none := func(err error) bool { return err == nil }
	for name, c := range map[string]struct {
		policy  middleware.InterruptedPolicy                 // nil: Ask
		ask     func(d *fixture, event string) (bool, error) //
		returns error                                        // of the handler
		late    bool                                         // it returns once its context has ended
		is      func(error) bool
		ran     int // in two deliveries
		asked   int
	}{
		"run":       {policy: middleware.Run, is: none, ran: 1},
		"skip":      {policy: middleware.Skip, is: none},
		"fail":      {policy: middleware.Fail, is: isInterrupted},
		"done":      {ask: func(*fixture, string) (bool, error) { return true, nil }, is: none, asked: 1},
		"not done":  {ask: func(*fixture, string) (bool, error) { return false, nil }, is: none, ran: 1, asked: 1},
		"ask fails": {ask: func(*fixture, string) (bool, error) { return true, boom }, is: func(err error) bool { return errors.Is(err, boom) }, asked: 2},
		"not done, and then it fails": {
			ask: func(*fixture, string) (bool, error) { return false, nil }, returns: boom, is: func(err error) bool { return errors.Is(err, boom) }, ran: 2, asked: 1,
		},
		"not done, and then it is unknown": {
			ask: func(*fixture, string) (bool, error) { return false, nil }, returns: middleware.Unknown(boom), is: func(err error) bool { return errors.Is(err, boom) }, ran: 2, asked: 2,
		},
		"not done, and then it is cut short": {
			ask: func(*fixture, string) (bool, error) { return false, nil }, returns: boom, late: true, is: func(err error) bool { return errors.Is(err, boom) }, ran: 2, asked: 2,
		},
		"the answer is about another lock": {
			ask: func(*fixture, string) (bool, error) { return false, &lock.CompletedError{} }, is: func(err error) bool { return err != nil && !errors.Is(err, lock.ErrCompleted) }, asked: 2,
		},
	} {
		for through, open := range doors {
			t.Run(through+", "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := newFixture()
					f.interrupt(t, lock.Key{Name: "orders", Event: "7"})
					ran, asked := 0, 0
					var ask func(string) (bool, error)
					opts := f.options(middleware.Namespace(""))
					if c.ask != nil {
						ask = func(event string) (bool, error) {
							if asked++; event != order7 {
								t.Errorf("asked about %s", event)
							}
							return c.ask(f, event)
						}
					} else {
						opts = append(opts, middleware.OnInterrupted(c.policy))
					}
					h := open(func(ctx context.Context) error {
						if ran++; c.late {
							<-ctx.Done()
						}
						return c.returns
					}, ask, opts)
					for delivery := range 2 {
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						defer cancel()
						if err := h(ctx); !c.is(err) {
							t.Errorf("delivery %d: %v", delivery+1, err)
						}
					}
					if ran != c.ran || asked != c.asked {
						t.Errorf("ran %d times, asked %d times, want %d and %d", ran, asked, c.ran, c.asked)
					}
				})
			})
		}
	}
}

// TestInterruptedOverHTTP shows what the client gets.
func TestInterruptedOverHTTP(t *testing.T) { // F19
	t.Parallel()
	type response = events.APIGatewayV2HTTPResponse
	key := func(context.Context, events.APIGatewayV2HTTPRequest) (lock.Key, error) {
		return lock.Key{Name: "orders", Event: "7"}, nil
	}
	for name, c := range map[string]struct {
		policy middleware.InterruptedPolicy
		status int
		says   string
	}{
		"fail": {middleware.Fail, http.StatusInternalServerError, "outcome is unknown"},
		"skip": {middleware.Skip, http.StatusConflict, "outcome is unknown"}, // also of the second request, for which it looks like any completed one
		"done, with the answer": {middleware.AskFor(func(context.Context, events.APIGatewayV2HTTPRequest) (response, bool, error) {
			return response{StatusCode: http.StatusCreated, Body: "paid"}, true, nil
		}), http.StatusCreated, "paid"},
		"not done": {middleware.AskFor(func(context.Context, events.APIGatewayV2HTTPRequest) (response, bool, error) {
			return response{}, false, nil
		}), http.StatusOK, "ran"},
		"an error": {middleware.AskFor(func(context.Context, events.APIGatewayV2HTTPRequest) (response, bool, error) {
			return response{StatusCode: http.StatusCreated, Body: "paid"}, true, errors.New("boom")
		}), 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture()
				f.interrupt(t, lock.Key{Name: "orders", Event: "7"})
				h := middleware.WithLock(key, func(context.Context, events.APIGatewayV2HTTPRequest) (response, error) {
					return response{StatusCode: http.StatusOK, Body: "ran"}, nil
				}, f.options(middleware.Namespace(""), middleware.OnInterrupted(c.policy))...)
				for range 2 {
					got, err := h(t.Context(), events.APIGatewayV2HTTPRequest{})
					if (err != nil) != (c.status == 0) || got.StatusCode != c.status || !strings.Contains(got.Body, c.says) || got.Headers["Retry-After"] != "" {
						t.Errorf("got %+v, error %v", got, err)
					}
				}
			})
		})
	}
}

// TestAskBeforeAStream: no answer can be stored for a stream, so Ask is right.
func TestAskBeforeAStream(t *testing.T) {
	t.Parallel()
	h := func(context.Context, order) (io.Reader, error) { return strings.NewReader("ran"), nil }
	ask := middleware.Ask(func(context.Context, order) (bool, error) { return true, nil })
	middleware.WithLock(byOrder, h, newFixture().options(middleware.OnInterrupted(ask))...) // it does not panic
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.interrupt(t, lock.Key{Name: "orders", Event: "7"})
		h := middleware.WithLock(byOrder, func(context.Context, order) (*events.LambdaFunctionURLStreamingResponse, error) { return nil, nil },
			f.options(middleware.Namespace(""), middleware.OnInterrupted(ask))...)
		for range 2 {
			if got, err := h(t.Context(), order{ID: "7"}); err != nil || got == nil || got.StatusCode != http.StatusConflict {
				t.Errorf("the client got %+v, %v; want status 409, because the answer is not known", got, err)
			}
		}
	})
}

// TestNothingToAskAbout: what the key function says of an event counts, also if
// there is a question.
func TestNothingToAskAbout(t *testing.T) {
	t.Parallel()
	ask := middleware.Ask(func(context.Context, order) (bool, error) { return true, nil })
	for _, says := range []error{keyfuncs.ErrIgnore, keyfuncs.ErrNoLock} {
		ran := false
		h := middleware.WithLock(func(context.Context, order) (lock.Key, error) { return lock.Key{}, says }, func(context.Context, order) error { ran = true; return nil },
			newFixture().options(middleware.OnInterrupted(ask))...)
		if err := h(t.Context(), order{}); err != nil || ran != (says == keyfuncs.ErrNoLock) {
			t.Errorf("%v: %v, ran: %v", says, err, ran)
		}
	}
}

// TestRunAfterSkip: of two policies the last one counts, also if it decides
// nothing.
func TestRunAfterSkip(t *testing.T) {
	t.Parallel()
	middleware.WithLock(byOrder, func(context.Context, order) error { return nil }, newFixture().options(middleware.OnInterrupted(middleware.Skip),
		middleware.OnInterrupted(middleware.Run), middleware.FailOpen())...) // it does not panic
}

// TestInterruptedRecordFailsForGood: a message whose earlier run was
// interrupted does not spend its receives, and its group goes on. One whose
// handler fails for such an event of another lock comes back.
func TestInterruptedRecordFailsForGood(t *testing.T) { // F19
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		key := func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
			return lock.Key{Name: "orders", Event: m.MessageId}, nil
		}
		f.interrupt(t, lock.Key{Name: "orders", Event: "1"})
		var moved, ran []string
		h := middleware.EachSQSMessage(key, func(_ context.Context, m events.SQSMessage) error {
			ran = append(ran, m.MessageId)
			return fmt.Errorf("of a lock inside: %w", &lock.InterruptedError{}) // such as one whose operator decides soon
		}, f.options(middleware.Namespace(""), middleware.OnInterrupted(middleware.Fail), middleware.OnFailed(func(_ context.Context, failed []*middleware.Failed[events.SQSMessage]) {
			for _, r := range failed {
				if errors.As(r.Err, new(*middleware.PermanentError)) && isInterrupted(r.Err) {
					moved = append(moved, r.Record.MessageId)
					r.Err = nil
				}
			}
		}))...)
		batch := sqsBatch(message("1", ""), message("2", ""))
		for i := range batch.Records {
			batch.Records[i].Attributes = map[string]string{"MessageGroupId": "group"}
		}
		answer, err := h(t.Context(), batch)
		wantReturned(t, answer, err, "2")
		if fmt.Sprint(moved, ran) != "[1] [2]" {
			t.Errorf("moved %v, ran %v", moved, ran)
		}
	})
}

// TestFailedQuestionIsReported: why a record failed without a run is in the log
// and the metrics, once, because a partial answer does not tell.
func TestFailedQuestionIsReported(t *testing.T) { // F19, F31
	t.Parallel()
	answers := func(done bool, err error) middleware.InterruptedPolicy {
		return middleware.Ask(func(context.Context, events.SQSMessage) (bool, error) { return done, err })
	}
	for name, c := range map[string]struct {
		policy middleware.InterruptedPolicy
		want   string // in the error that is reported; empty: none
	}{
		"it fails":          {answers(false, errRecord), errRecord.Error()},
		"it asks a lock":    {answers(false, &lock.HeldError{}), "OnInterrupted failed"},
		"it takes too long": {middleware.Ask(func(ctx context.Context, _ events.SQSMessage) (bool, error) { <-ctx.Done(); return false, nil }), "deadline"},
		"it panics":         {middleware.Ask(func(context.Context, events.SQSMessage) (bool, error) { panic("boom") }), "boom"},
		"done":              {answers(true, nil), ""},
		"Fail":              {middleware.Fail, ""}, // "interrupted" says so
	} {
		t.Run(name, func(t *testing.T) {
			underDeadline(t, func(t *testing.T, ctx context.Context) {
				f := newFixture()
				key := func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
					return lock.Key{Name: m.MessageId, Event: m.MessageId}, nil
				}
				f.interrupt(t, lock.Key{Name: "1", Event: "1"})
				f.forget()
				h := middleware.EachSQSMessage(key, func(context.Context, events.SQSMessage) error { return nil }, f.options(middleware.Namespace(""), middleware.OnInterrupted(c.policy))...)
				_, _ = h(ctx, sqsBatch(message("1", ""), message("2", "")))
				failed := f.of(middleware.OutcomeHandlerFailed)
				if want := c.want != ""; len(failed) > 1 || want != (len(failed) == 1) || want && (!strings.Contains(failed[0].Err.Error(), c.want) || failed[0].Key.Name != "1") {
					t.Errorf("reported %v, want %q", failed, c.want)
				}
			})
		})
	}
}

// TestAskForAnyResult: the question of a handler whose result is of any type
// may name a type, and the handler's callers get what it says.
func TestAskForAnyResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.interrupt(t, lock.Key{Name: "orders/7", Event: "7"})
		key := func(_ context.Context, o order) (lock.Key, error) { return lock.Key{Name: "orders/7", Event: "7"}, nil }
		paid := func(context.Context, order) (string, bool, error) { return "paid", true, nil }
		h := middleware.WithLock(key, func(context.Context, order) (any, error) { return "ran", nil },
			f.options(middleware.Namespace(""), middleware.OnCompleted(middleware.Replay), middleware.OnInterrupted(middleware.AskFor(paid)))...)
		for range 2 {
			if got, err := h(t.Context(), order{}); got != "paid" || err != nil {
				t.Errorf("got %v, error %v", got, err)
			}
		}
	})
}

// TestAskForNil: nil is an answer like any other.
func TestAskForNil(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.interrupt(t, lock.Key{Name: "orders", Event: "7"})
		h := middleware.WithLock(byOrder, func(context.Context, order) (any, error) { return "ran", nil },
			f.options(middleware.Namespace(""), middleware.OnInterrupted(middleware.AskFor(func(context.Context, order) (any, bool, error) { return nil, true, nil })))...)
		if got, err := h(t.Context(), order{ID: "7"}); got != nil || err != nil {
			t.Errorf("got %v, error %v", got, err)
		}
	})
}

// TestAskForWithoutJSON: a result that cannot be stored completes nothing.
func TestAskForWithoutJSON(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.interrupt(t, lock.Key{Name: "orders", Event: "7"})
		asked := 0
		h := middleware.WithLock(byOrder, func(context.Context, order) (any, error) { return "ran", nil },
			f.options(middleware.Namespace(""), middleware.OnInterrupted(middleware.AskFor(func(context.Context, order) (any, bool, error) {
				asked++
				return make(chan int), true, nil
			})))...)
		for range 2 {
			if got, err := h(t.Context(), order{ID: "7"}); got != nil || !errors.As(err, new(*json.UnsupportedTypeError)) {
				t.Errorf("got %v, error %v", got, err)
			}
		}
		if asked != 2 {
			t.Errorf("asked %d times", asked)
		}
	})
}

// TestOnErrorOfAnUncomparableError: OnError may return the error of a question
// that Go cannot compare, or put another in its place.
func TestOnErrorOfAnUncomparableError(t *testing.T) {
	t.Parallel()
	ask := middleware.AskFor(func(context.Context, order) (int, bool, error) { return 0, false, invalidFields{"a"} })
	for _, want := range []invalidFields{{"a"}, {"b"}} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture()
			f.interrupt(t, lock.Key{Name: "orders", Event: "7"})
			onError := middleware.OnError(func(context.Context, error) (int, error) { return 0, want })
			h := middleware.WithLock(byOrder, func(context.Context, order) (int, error) { return 1, nil },
				f.options(middleware.Namespace(""), middleware.OnInterrupted(ask), onError)...)
			if _, err := h(t.Context(), order{ID: "7"}); fmt.Sprintf("%#v", err) != fmt.Sprintf("%#v", want) {
				t.Errorf("error %#v, want %#v", err, want)
			}
		})
	}
}

func TestUnknown(t *testing.T) {
	t.Parallel()
	err := middleware.Unknown(errRecord)
	if !errors.Is(err, errRecord) || !errors.Is(err, lock.ErrUnknown) || err.Error() != errRecord.Error() || middleware.Unknown(nil) != nil {
		t.Errorf("%#v", err)
	}
}

func TestOnInterruptedIsRefused(t *testing.T) {
	t.Parallel()
	skip := middleware.OnInterrupted(middleware.Skip)
	asks := func(context.Context, int) (bool, error) { return true, nil }
	answers := func(context.Context, order) (string, bool, error) { return "", true, nil }
	h := func(context.Context, order) error { return nil }
	with := func(opts ...middleware.Option) []middleware.Option { return newFixture().options(opts...) }
	for name, c := range map[string]struct {
		use  func()
		says string
	}{
		"FailOpen": {func() { middleware.WithLock(byOrder, h, with(skip, middleware.FailOpen())...) }, "FailOpen"},
		"FailOpen, and a question": {func() {
			ask := middleware.Ask(func(context.Context, order) (bool, error) { return true, nil })
			middleware.WithLock(byOrder, h, with(middleware.OnInterrupted(ask), middleware.FailOpen())...)
		}, "FailOpen"},
		"FailOpen, around a lambda.Handler": {func() {
			middleware.WithLock[order, lambda.Handler](byOrder, rawRun(nil), with(skip, middleware.FailOpen())...)
		}, "FailOpen"},
		"no answer of a lambda.Handler": {func() {
			ask := middleware.Ask(func(context.Context, events.ALBTargetGroupRequest) (bool, error) { return true, nil })
			key := func(context.Context, events.ALBTargetGroupRequest) (lock.Key, error) { return lock.Key{}, nil }
			middleware.WithLock[events.ALBTargetGroupRequest, lambda.Handler](key, rawRun(nil), with(middleware.OnInterrupted(ask))...)
		}, "use AskFor"},
		"Latest":     {func() { middleware.Latest(byOrder, h, with(skip)...) }, "OnInterrupted"},
		"OnlyLatest": {func() { middleware.EachSQSBody(byOrder, h, with(skip, middleware.OnlyLatest())...) }, "OnInterrupted"},
		"WithLimit":  {func() { middleware.WithLimit(func(order) string { return "" }, 2, h, with(skip)...) }, "WithLimit"},
		"by the engine": {func() {
			middleware.WithLock(byOrder, h, with(engine(func(o *lock.Options) { o.OnInterrupted = lock.SkipInterrupted }), middleware.FailOpen())...)
		}, "FailOpen"},
		"nil":          {func() { middleware.OnInterrupted(nil)(nil) }, "OnInterrupted(nil)"},
		"Ask(nil)":     {func() { middleware.Ask[order](nil) }, "Ask(nil)"},
		"AskFor(nil)":  {func() { middleware.AskFor[order, int](nil) }, "AskFor(nil)"},
		"other event":  {func() { middleware.WithLock(byOrder, h, with(middleware.OnInterrupted(middleware.Ask(asks)))...) }, "for int, but the key function takes middleware_test.order"},
		"other record": {func() { middleware.EachSQSBody(byOrder, h, with(middleware.OnInterrupted(middleware.Ask(asks)))...) }, "for int"},
		"no result":    {func() { middleware.WithLock(byOrder, h, with(middleware.OnInterrupted(middleware.AskFor(answers)))...) }, "use Ask"},
		"no answer": {func() {
			ask := middleware.Ask(func(context.Context, order) (bool, error) { return true, nil })
			middleware.WithLock(byOrder, func(context.Context, order) (int, error) { return 0, nil }, with(middleware.OnInterrupted(ask))...)
		}, "use AskFor"},
		"another result": {func() {
			middleware.WithLock(byOrder, func(context.Context, order) (int, error) { return 0, nil }, with(middleware.OnInterrupted(middleware.AskFor(answers)))...)
		}, "return int"},
		"a stream": {func() {
			stream := func(context.Context, order) (io.Reader, bool, error) { return nil, true, nil }
			middleware.WithLock(byOrder, func(context.Context, order) (io.Reader, error) { return nil, nil }, with(middleware.OnInterrupted(middleware.AskFor(stream)))...)
		}, "use Ask"},
		"a result of any kind": {func() {
			anything := func(context.Context, order) (any, bool, error) { return "", true, nil }
			middleware.WithLock(byOrder, func(context.Context, order) (string, error) { return "", nil }, with(middleware.OnInterrupted(middleware.AskFor(anything)))...)
		}, "return string"},
		"a policy of old": {func() { middleware.OnInterrupted(middleware.Policy(9))(nil) }, "neither Fail nor Skip"},
	} {
		t.Run(name, func(t *testing.T) { wantPanic(t, c.use, c.says) })
	}
}
