package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/patience"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestRetryAfter shows that the client is told to come back after about as long
// as the holder has worked, but no later than when its lease ends.
func TestRetryAfter(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration // since the holder began; its lease lasts 5 s
		want  string
	}{
		"just begun":    {0, "1"},
		"for a moment":  {1100 * time.Millisecond, "2"},
		"for two":       {2 * time.Second, "2"},
		"near its end":  {4 * time.Second, "1"},
		"past its half": {3 * time.Second, "2"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture()
				held := f.acquireElsewhere(t, lock.Key{Name: "orders", Event: "1"})
				time.Sleep(c.after)
				h := middleware.WithLock(byOrder, func(context.Context, order) (events.APIGatewayProxyResponse, error) {
					return events.APIGatewayProxyResponse{}, errors.New("ran")
				}, f.options(middleware.Namespace(""))...)
				for id, detail := range map[string]string{"1": "this request is already in progress", "2": "another request for the same resource"} {
					r, err := h(t.Context(), order{ID: id})
					if err != nil || r.StatusCode != http.StatusConflict || r.Headers["Retry-After"] != c.want || !strings.Contains(r.Body, detail) {
						t.Errorf("%s: %+v, %v; want Retry-After %s and %q", id, r, err, c.want, detail)
					}
				}
				_ = held.Release()
			})
		})
	}
}

// TestRetryAfterCooldown shows that the client is told to come back when the
// cooldown of HoldAtLeast is over.
func TestRetryAfterCooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		h := middleware.WithLock(keyfuncs.Static("n"), func(context.Context, order) (restResponse, error) {
			return restResponse{StatusCode: 200}, nil
		}, f.options(middleware.HoldAtLeast(time.Minute))...)
		for range 2 {
			r, err := h(t.Context(), order{})
			time.Sleep(time.Second)
			if want := map[int]string{200: "", 409: "59"}; err != nil || r.Headers["Retry-After"] != want[r.StatusCode] || strings.Contains(r.Body, "in progress") {
				t.Errorf("%+v, %v", r, err)
			}
		}
		f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeHeld)
	})
}

type restResponse = events.APIGatewayProxyResponse

// occupied calls a handler of HTTP requests while another one holds its lock,
// then for a completed event, and then for a stale one.
func occupied(t *testing.T, opts ...middleware.Option) (held, completed, stale func() (restResponse, error)) {
	t.Helper()
	f := newFixture()
	key := func(_ context.Context, o order) (lock.Key, error) {
		return lock.Key{Name: "n", Event: o.ID, Order: strconv.FormatInt(o.Item, 10)}, nil
	}
	h := middleware.WithLock(key, func(context.Context, order) (restResponse, error) {
		return restResponse{StatusCode: 200, Body: "ran"}, nil
	}, f.options(opts...)...)
	call := func(o order) func() (restResponse, error) {
		return func() (restResponse, error) { return h(t.Context(), o) }
	}
	held = func() (restResponse, error) {
		l := f.acquireElsewhere(t, lock.Key{Name: "n", Event: "7"})
		defer func() { _ = l.Release() }()
		return h(t.Context(), order{ID: "7", Item: 7})
	}
	expect.Value(h(t.Context(), order{ID: "5", Item: 5}))(t)
	return held, call(order{ID: "5", Item: 5}), call(order{ID: "4", Item: 4})
}

// TestHTTPOptionsWin shows that an explicit option takes the place of the
// default for HTTP.
func TestHTTPOptionsWin(t *testing.T) {
	t.Parallel()
	busy := middleware.Respond(restResponse{StatusCode: 425})
	asRead := middleware.OnError(func(_ context.Context, err error) (restResponse, error) {
		return restResponse{StatusCode: 418, Body: fmt.Sprintf("%T", err)}, nil
	})
	onlyHeld := middleware.OnError(func(_ context.Context, err error) (restResponse, error) {
		if errors.Is(err, lock.ErrHeld) {
			return restResponse{StatusCode: 503}, nil
		}
		return restResponse{}, err
	})
	fails := errors.New("fails")
	failing := middleware.OnError(func(context.Context, error) (restResponse, error) { return restResponse{}, fails })
	wrapping := middleware.OnError(func(_ context.Context, err error) (restResponse, error) {
		return restResponse{}, fmt.Errorf("mine: %w", err)
	})
	bare := middleware.OnError(func(_ context.Context, err error) (restResponse, error) {
		if errors.Is(err, lock.ErrHeld) {
			return restResponse{}, lock.ErrHeld
		}
		return restResponse{}, lock.ErrCompleted
	})
	for name, c := range map[string]struct {
		opts                   []middleware.Option
		held, completed, stale int // statuses; 0: an error
	}{
		"defaults":              {nil, 409, 200, 409},
		"OnHeld(Fail)":          {[]middleware.Option{middleware.OnHeld(middleware.Fail)}, 0, 200, 409},
		"OnHeld(Respond)":       {[]middleware.Option{middleware.OnHeld(busy)}, 425, 200, 409},
		"OnHeld(Wait)":          {[]middleware.Option{middleware.OnHeld(middleware.Wait(time.Millisecond))}, 409, 200, 409},
		"OnCompleted(Fail)":     {[]middleware.Option{middleware.OnCompleted(middleware.Fail)}, 409, 0, 0},
		"OnCompleted(Replay)":   {[]middleware.Option{middleware.OnCompleted(middleware.Replay)}, 409, 200, 409},
		"OnError":               {[]middleware.Option{asRead}, 418, 200, 418},
		"OnError, OnHeld(Fail)": {[]middleware.Option{asRead, middleware.OnHeld(middleware.Fail)}, 418, 200, 418},
		"OnError, Respond":      {[]middleware.Option{asRead, middleware.OnHeld(busy)}, 425, 200, 418},
		"OnError, both Fail":    {[]middleware.Option{asRead, middleware.OnCompleted(middleware.Fail)}, 418, 418, 418},
		"OnError, in part":      {[]middleware.Option{onlyHeld}, 503, 200, 409},
		"OnError that fails":    {[]middleware.Option{failing}, 0, 200, 0},
		"OnError that wraps":    {[]middleware.Option{wrapping}, 0, 200, 0},
		"OnError that unwraps":  {[]middleware.Option{bare}, 0, 200, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			held, completed, stale := occupied(t, append([]middleware.Option{middleware.Namespace("")}, c.opts...)...)
			for what, c := range map[string]struct {
				call func() (restResponse, error)
				want int
			}{"held": {held, c.held}, "completed": {completed, c.completed}, "stale": {stale, c.stale}} {
				r, err := c.call()
				if r.StatusCode != c.want || (err != nil) != (c.want == 0) {
					t.Errorf("%s: %+v, %v; want status %d", what, r, err, c.want)
				}
				if r.StatusCode == http.StatusOK && r.Headers["Idempotent-Replayed"] != "true" {
					t.Errorf("%s: the first response again, without the mark: %+v", what, r)
				}
				if r.StatusCode == http.StatusConflict && what != "held" && r.Headers["Retry-After"] != "" {
					t.Errorf("%s: Retry-After %s", what, r.Headers["Retry-After"])
				}
			}
		})
	}
}

// TestOnErrorSeesEveryError shows that OnError gets the errors that are
// not the client's business too, that its own error takes their place, and that
// handlers of other results can use it.
func TestOnErrorSeesEveryError(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.faulty.Always(fault.Acquire, fault.Deny)
	text := middleware.OnError(func(_ context.Context, err error) (string, error) { return fmt.Sprintf("%T", err), nil })
	h := middleware.WithLock(byOrder, func(context.Context, order) (string, error) { return "ran", nil }, f.options(text)...)
	if out, err := h(t.Context(), order{ID: "1"}); out != "*lock.StoreError" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
	if out, err := h(t.Context(), order{}); out != "*lock.StoreError" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
	for name, c := range map[string]struct {
		with middleware.Option
		want string
	}{
		"bytes":       {middleware.OnError(func(context.Context, error) ([]byte, error) { return []byte(`{"a": 1}`), nil }), `{"a": 1}`},
		"raw message": {middleware.OnError(func(context.Context, error) (json.RawMessage, error) { return json.RawMessage(`{"a": 1}`), nil }), `{"a": 1}`},
		"a value":     {middleware.OnError(func(context.Context, error) (order, error) { return order{ID: "x"}, nil }), `{"id":"x","item":0}`},
		"nothing":     {middleware.OnError(func(context.Context, error) (any, error) { return nil, nil }), `null`},
	} {
		t.Run(name, func(t *testing.T) {
			raw := middleware.WithLock(byOrder, lambda.Handler(echo{}), f.options(c.with)...)
			if out, err := raw.Invoke(t.Context(), []byte(`{"id":"1"}`)); string(out) != c.want || err != nil {
				t.Errorf("%s, %v; want %s", out, err, c.want)
			}
		})
	}
}

// TestCompletedIf shows that only results for which the function says so
// complete their events, for results of every kind.
func TestCompletedIf(t *testing.T) {
	t.Parallel()
	runs := 0
	counted := func(result int) int { runs++; return result }
	for name, call := range map[string]func(f *fixture) func(int){
		"value": func(f *fixture) func(int) {
			h := middleware.WithLock(byOrder, func(_ context.Context, o order) (int64, error) { return int64(counted(int(o.Item))), nil },
				f.options(middleware.CompletedIf(func(n int64) bool { return n > 0 }))...)
			return func(n int) { _, _ = h(t.Context(), order{ID: "1", Item: int64(n)}) }
		},
		"any": func(f *fixture) func(int) {
			h := middleware.WithLock(byOrder, func(_ context.Context, o order) (any, error) {
				if counted(int(o.Item)) == 0 {
					return nil, nil
				}
				return o, nil
			}, f.options(middleware.CompletedIf(func(v any) bool { return v != nil }))...)
			return func(n int) { _, _ = h(t.Context(), order{ID: "1", Item: int64(n)}) }
		},
		"bytes": func(f *fixture) func(int) {
			h := middleware.WithLock(byOrder, lambda.Handler(rawFunc(func(p []byte) ([]byte, error) { counted(0); return p, nil })),
				f.options(middleware.CompletedIf(func(b []byte) bool { return !bytes.Contains(b, []byte(`:0}`)) }))...)
			return func(n int) { _, _ = h.Invoke(t.Context(), toJSON(t, order{ID: "1", Item: int64(n)})) }
		},
		"a response that HTTP would not complete": func(f *fixture) func(int) {
			h := middleware.WithLock(byOrder, func(_ context.Context, o order) (restResponse, error) {
				return restResponse{StatusCode: 503 - 303*counted(1-int(o.Item))}, nil
			}, f.options(middleware.CompletedIf(func(r restResponse) bool { return r.StatusCode == http.StatusServiceUnavailable }))...)
			return func(n int) { _, _ = h(t.Context(), order{ID: "1", Item: int64(n)}) }
		},
		"a stream": func(f *fixture) func(int) {
			h := middleware.WithLock(byOrder, func(_ context.Context, o order) (io.Reader, error) {
				return strings.NewReader(strings.Repeat("x", counted(int(o.Item)))), nil
			}, f.options(middleware.CompletedIf(func(r io.Reader) bool { return r.(*strings.Reader).Len() > 0 }))...)
			return func(n int) {
				if r, _ := h(t.Context(), order{ID: "1", Item: int64(n)}); r != nil {
					_, _ = io.ReadAll(r)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			runs = 0
			use := call(f)
			for _, n := range []int{0, 0, 1, 1} {
				use(n)
			}
			if runs != 3 {
				t.Errorf("%d runs, want two that do not complete and one that does", runs)
			}
			f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeAlreadyCompleted)
		})
	}
}

// TestHTTPCallbacksThatPanic shows that a panic of CompletedIf, RememberFor or
// OnError reaches the runtime, and that no lock is left.
func TestHTTPCallbacksThatPanic(t *testing.T) { // F48
	t.Parallel()
	for name, opt := range map[string]middleware.Option{
		"CompletedIf": middleware.CompletedIf(func(restResponse) bool { panic("callback") }),
		"RememberFor": middleware.RememberFor(func(restResponse) time.Duration { panic("callback") }),
		"OnError":     middleware.OnError(func(context.Context, error) (restResponse, error) { panic("callback") }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			key := func(_ context.Context, o order) (lock.Key, error) {
				if name == "OnError" {
					return lock.Key{}, errRefused
				}
				return byOrder(patience.Context(t), o)
			}
			h := middleware.WithLock(key, func(context.Context, order) (restResponse, error) { return restResponse{StatusCode: 200}, nil }, f.options(opt)...)
			func() {
				defer func() {
					if p := recover(); p != "callback" {
						t.Errorf("the caller got %v", p)
					}
				}()
				_, _ = h(patience.Context(t), order{ID: "1"})
			}()
			if err := mustRun(f)(patience.Context(t), order{ID: "1"}); err != nil {
				t.Errorf("the event does not run: %v", err)
			}
		})
	}
}

// TestReplayByDefaultDoesNotWarn shows that nobody is warned of a key without
// an Event who did not ask for Replay.
func TestReplayByDefaultDoesNotWarn(t *testing.T) {
	t.Parallel()
	name := func(context.Context, order) (lock.Key, error) { return lock.Key{Name: "n"}, nil }
	for want, opts := range [][]middleware.Option{nil, {middleware.OnCompleted(middleware.Replay)}} {
		var log warnings
		h := middleware.WithLock(name, func(context.Context, order) (restResponse, error) { return restResponse{StatusCode: 200}, nil },
			newFixture().options(append(opts, log.option())...)...)
		if _, err := h(t.Context(), order{}); err != nil || len(log.lines()) != want {
			t.Errorf("%v, logged %q; want %d lines", err, log.lines(), want)
		}
	}
}

// TestSkipOfHeldBody shows that OnHeld(Skip) answers no request with a zero
// result, also where only the payload shows that it is one and the result has
// no room for a status: the client would take it for the answer.
func TestSkipOfHeldBody(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.acquireElsewhere(t, lock.Key{Name: "n", Event: "e"})
	h := middleware.WithLock(staticEvent[json.RawMessage], func(context.Context, json.RawMessage) (map[string]string, error) { return nil, nil }, f.options(middleware.OnHeld(middleware.Skip))...)
	if got, err := h(t.Context(), gatewayEvent(t, "apigateway-http")); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("a request: %v, %v; want that it fails", got, err)
	}
	if got, err := h(t.Context(), json.RawMessage(`{}`)); got != nil || err != nil {
		t.Errorf("no request: %v, %v; want that it is skipped", got, err)
	}
}

// TestWrongUseOverHTTP shows that an option that cannot work with a response,
// or does not fit the handler's result, panics when the handler is wrapped.
func TestWrongUseOverHTTP(t *testing.T) {
	t.Parallel()
	opts := newFixture().options
	rest := func(context.Context, order) (restResponse, error) { return restResponse{}, nil }
	anything := func(context.Context, v2Event) (any, error) { return nil, nil }
	byAPI := keyfuncs.IdempotencyKey[v2Event]
	for name, c := range map[string]struct {
		use    func()
		within string
	}{
		"OnHeld(Skip)":      {func() { middleware.WithLock(byOrder, rest, opts(middleware.OnHeld(middleware.Skip))...) }, "OnHeld(Skip)"},
		"OnCompleted(Skip)": {func() { middleware.WithLock(byOrder, rest, opts(middleware.OnCompleted(middleware.Skip))...) }, "OnCompleted(Skip)"},
		"any, OnHeld(Skip)": {func() { middleware.WithLock(byAPI, anything, opts(middleware.OnHeld(middleware.Skip))...) }, "empty response"},
		"raw, OnCompleted(Skip)": {func() {
			middleware.WithLock(byAPI, lambda.Handler(echo{}), opts(middleware.OnCompleted(middleware.Skip))...)
		}, "empty response"},
		"Respond without a status": {func() {
			middleware.WithLock(byOrder, rest, opts(middleware.OnHeld(middleware.Respond(restResponse{})))...)
		}, "StatusCode"},
		"Respond(nil)": {func() {
			middleware.WithLock(byOrder, rest, opts(middleware.OnHeld(middleware.Respond(nil)))...)
		}, "Respond(nil)"},
		"Respond(nil) of a pointer": {func() {
			middleware.WithLock(byAPI, func(context.Context, v2Event) (*restResponse, error) { return nil, nil }, opts(middleware.OnHeld(middleware.Respond((*restResponse)(nil))))...)
		}, "Respond(nil)"},
		"Respond(nil) of anything": {func() {
			middleware.WithLock(byAPI, anything, opts(middleware.OnHeld(middleware.Respond(nil)))...)
		}, "Respond(nil)"},
		"Respond(nil) of any JSON": {func() {
			middleware.WithLock(byDoc, func(context.Context, json.RawMessage) (any, error) { return nil, nil }, opts(middleware.OnHeld(middleware.Respond(nil)))...)
		}, "Respond(nil)"},
		"Respond(nil) of a stream": {func() {
			middleware.WithLock(byOrder, func(context.Context, order) (*events.LambdaFunctionURLStreamingResponse, error) { return nil, nil },
				opts(middleware.OnHeld(middleware.Respond((*events.LambdaFunctionURLStreamingResponse)(nil))))...)
		}, "Respond(nil)"},
		"Respond of a nil map": {func() {
			middleware.WithLock(byAPI, anything, opts(middleware.OnHeld(middleware.Respond(map[string]any(nil))))...)
		}, "Respond(nil)"},
		"Respond of no JSON": {func() {
			middleware.WithLock(byAPI, lambda.Handler(echo{}), opts(middleware.OnHeld(middleware.Respond(json.RawMessage(nil))))...)
		}, "Respond(nil)"},
		"OnHeld(Skip), own types": {func() {
			middleware.WithLock(byOrder, func(context.Context, order) (ownResponse, error) { return ownResponse{}, nil }, opts(middleware.OnHeld(middleware.Skip))...)
		}, "empty response"},
		"OnHeld(Skip), a body": {func() {
			middleware.WithLock(byAPI, func(context.Context, v2Event) (order, error) { return order{}, nil }, opts(middleware.OnHeld(middleware.Skip))...)
		}, "empty response"},
		"CompletedIf, other type": {func() {
			middleware.WithLock(byOrder, rest, opts(middleware.CompletedIf(func(int) bool { return true }))...)
		}, "pass a func(events.APIGatewayProxyResponse) bool"},
		"CompletedIf, no result": {func() {
			middleware.WithLock(byOrder, func(order) error { return nil }, opts(middleware.CompletedIf(func(any) bool { return true }))...)
		}, "has none"},
		"CompletedIf, raw": {func() {
			middleware.WithLock(byOrder, lambda.Handler(echo{}), opts(middleware.CompletedIf(func(json.RawMessage) bool { return true }))...)
		}, "func([]byte) bool"},
		"CompletedIf of records": {func() {
			middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error { return nil }, opts(middleware.CompletedIf(func(any) bool { return true }))...)
		}, "has none"},
		"RememberFor, other type": {func() {
			middleware.WithLock(byOrder, func(context.Context, order) (int, error) { return 0, nil }, opts(middleware.RememberFor(func(string) time.Duration { return 0 }))...)
		}, "pass a func(int) time.Duration"},
		"RememberFor, no result": {func() {
			middleware.WithLock(byOrder, func(order) error { return nil }, opts(middleware.RememberFor(func(any) time.Duration { return 0 }))...)
		}, "has none"},
		"CompletedIf, other interface": {func() {
			middleware.WithLock(byOrder, rest, opts(middleware.CompletedIf(func(io.Reader) bool { return true }))...)
		}, "pass a func(events.APIGatewayProxyResponse) bool"},
		"RememberFor, raw": {func() {
			middleware.WithLock(byOrder, lambda.Handler(echo{}), opts(middleware.RememberFor(func(string) time.Duration { return 0 }))...)
		}, "pass a func([]byte) time.Duration"},
		"RememberFor of a stream": {func() {
			middleware.WithLock(byOrder, func(context.Context, order) (io.Reader, error) { return nil, nil }, opts(middleware.RememberFor(func(io.Reader) time.Duration { return 0 }))...)
		}, "use Remember"},
		"RememberFor(nil)": {func() { middleware.RememberFor[int](nil) }, "RememberFor(nil)"},
		"CompletedIf(nil)": {func() { middleware.CompletedIf[int](nil) }, "CompletedIf(nil)"},
		"OnError, other type": {func() {
			middleware.WithLock(byOrder, rest, opts(middleware.OnError(func(context.Context, error) (int, error) { return 0, nil }))...)
		}, "return events.APIGatewayProxyResponse"},
		"OnError of records": {func() {
			middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error { return nil }, opts(middleware.OnError(func(context.Context, error) (any, error) { return nil, nil }))...)
		}, "has none"},
		"OnError(nil)": {func() { middleware.OnError[int](nil) }, "OnError(nil)"},
		"Replay of a stream": {func() {
			middleware.WithLock(byAPI, func(context.Context, v2Event) (io.Reader, error) { return nil, nil }, opts(middleware.OnCompleted(middleware.Replay))...)
		}, "stream"},
	} {
		t.Run(name, func(t *testing.T) { wantPanic(t, c.use, c.within) })
	}
	// These fit.
	middleware.WithLock(byOrder, func(context.Context, order) (*events.LambdaFunctionURLStreamingResponse, error) { return nil, nil },
		opts(middleware.OnCompleted(middleware.Replay))...)
	middleware.WithLock(byOrder, lambda.Handler(echo{}), opts(middleware.OnHeld(middleware.Skip), middleware.CompletedIf(func(any) bool { return true }))...)
	middleware.WithLock(byAPI, func(context.Context, v2Event) (order, error) { return order{}, nil }, opts(middleware.OnCompleted(middleware.Skip))...)
	middleware.WithLock(byAPI, func(context.Context, v2Event) (*order, error) { return nil, nil }, opts(middleware.OnHeld(middleware.Respond((*order)(nil))))...)
	middleware.WithLock(byOrder, func(context.Context, order) (any, error) { return nil, nil }, opts(middleware.OnHeld(middleware.Respond(nil)))...)
}
