package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/middleware"
)

// gatewayEvent returns a real event of a gateway.
func gatewayEvent(t *testing.T, file string) []byte {
	t.Helper()
	doc, err := os.ReadFile("../keyfuncs/testdata/" + file + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// byDoc gives every event the same key.
func byDoc(context.Context, json.RawMessage) (lock.Key, error) {
	return lock.Key{Name: "n", Event: "e"}, nil
}

// TestHTTPResultsWithoutStatus shows what the gateways make of results that are
// not a complete response: where the client gets an error the retry runs, and
// where it gets a response that is replayed.
func TestHTTPResultsWithoutStatus(t *testing.T) {
	t.Parallel()
	const rest, v2, alb, event = "apigateway-rest", "apigateway-http", "alb", "sqs"
	marked := `{"statusCode":200,"headers":{"Content-Type":"application/json","Idempotent-Replayed":"true"},"body":"{\"order\": 7}","isBase64Encoded":false}`
	for name, c := range map[string]struct {
		file, result string
		again        string // what the second request gets; empty: the handler runs again
	}{
		"REST, no status":        {rest, `{"order": 7}`, ""},
		"REST, null":             {rest, `null`, ""},
		"REST, text":             {rest, `"done"`, ""},
		"REST, status null":      {rest, `{"statusCode":null}`, ""},
		"REST, status 0":         {rest, `{"statusCode":0}`, ""},
		"REST, no number":        {rest, `{"statusCode":"ok"}`, ""},
		"REST, half a status":    {rest, `{"statusCode":200.5}`, ""},
		"REST, not JSON":         {rest, `{`, ""},
		"REST, nothing":          {rest, ``, ""},
		"REST, status as text":   {rest, `{"statusCode":"201"}`, `{"headers":{"Idempotent-Replayed":"true"},"statusCode":"201"}`},
		"load balancer, nothing": {alb, `{}`, ""},
		"HTTP API, no status":    {v2, `{"order": 7}`, marked},
		"HTTP API, null":         {v2, `null`, `null`},
		"HTTP API, text":         {v2, `"done"`, `"done"`},
		"HTTP API, list":         {v2, `[1]`, `[1]`},
		"HTTP API, status null":  {v2, `{"statusCode":null}`, `{"statusCode":200,"headers":{"Content-Type":"application/json","Idempotent-Replayed":"true"},"body":"{\"statusCode\":null}","isBase64Encoded":false}`},
		"HTTP API, status 0":     {v2, `{"statusCode":0,"body":"x"}`, ""},
		"HTTP API, not JSON":     {v2, `{`, ""},
		"HTTP API, nothing":      {v2, ``, ""},
		"no request":             {event, `{"statusCode":503}`, `null`}, // skipped, as every other event
		"its own mark":           {v2, `{"statusCode":200,"headers":{"idempotent-replayed":"false","n":12345678901234567890}}`, `{"headers":{"Idempotent-Replayed":"true","n":12345678901234567890},"statusCode":200}`},
		"odd headers":            {v2, `{"statusCode":200,"headers":[]}`, `{"headers":{"Idempotent-Replayed":"true"},"statusCode":200}`},
		"headers of both kinds":  {alb, `{"statusCode":200,"headers":{"a":"b"},"multiValueHeaders":{"a":["b"]}}`, `{"headers":{"Idempotent-Replayed":"true","a":"b"},"multiValueHeaders":{"Idempotent-Replayed":["true"],"a":["b"]},"statusCode":200}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			h := middleware.WithLock(byDoc, lambda.Handler(rawFunc(func([]byte) ([]byte, error) { runs++; return []byte(c.result), nil })), newFixture().options()...)
			for i, want := range []string{c.result, c.again} {
				if i > 0 && c.again == "" {
					want = c.result
				}
				if out, err := h.Invoke(t.Context(), gatewayEvent(t, c.file)); string(out) != want || err != nil {
					t.Errorf("%d: %s, %v; want %s", i+1, out, err, want)
				}
			}
			if again := runs == 2; again != (c.again == "") {
				t.Errorf("%d runs", runs)
			}
		})
	}
}

// TestHTTPZeroResponses shows that the retry runs after a typed response
// without a status, and after a nil pointer where the gateway makes an error of
// null.
func TestHTTPZeroResponses(t *testing.T) {
	t.Parallel()
	for name, runs := range map[string]int{
		"REST":                  runsOf(t, events.APIGatewayProxyResponse{}),
		"*REST":                 runsOf[*events.APIGatewayProxyResponse](t, nil),
		"HTTP API":              runsOf(t, events.APIGatewayV2HTTPResponse{}),
		"Function URL":          runsOf(t, events.LambdaFunctionURLResponse{}),
		"load balancer":         runsOf(t, events.ALBTargetGroupResponse{}),
		"*load balancer":        runsOf[*events.ALBTargetGroupResponse](t, nil),
		"nil stream":            runsOf[*events.APIGatewayProxyStreamingResponse](t, nil),
		"stream, 503, no body":  runsOf(t, &events.LambdaFunctionURLStreamingResponse{StatusCode: 503}),
		"cannot be encoded":     runsOf(t, func() {}),
		"HTTP API, nil":         runsOf[*events.APIGatewayV2HTTPResponse](t, nil) + 1, // the client gets null with status 200
		"Function URL, nil":     runsOf[*events.LambdaFunctionURLResponse](t, nil) + 1,
		"nil stream of a URL":   runsOf[*events.LambdaFunctionURLStreamingResponse](t, nil) + 1,
		"stream of status 0":    runsOf(t, &events.LambdaFunctionURLStreamingResponse{}) + 1, // which is 200
		"REST stream, status 0": runsOf(t, &events.APIGatewayProxyStreamingResponse{}) + 1,
	} {
		if runs != 2 {
			t.Errorf("%s: %d runs of two are wrong", name, runs)
		}
	}
}

// runsOf returns how often a handler of REST requests with that result runs
// when a request is repeated.
func runsOf[R any](t *testing.T, result R) (runs int) {
	t.Helper()
	key := func(context.Context, order) (lock.Key, error) { return lock.Key{Name: "n", Event: "e"}, nil }
	if _, ok := any(result).(func()); ok { // a type that only the event shows to be for HTTP
		h := middleware.WithLock(func(context.Context, restEvent) (lock.Key, error) { return key(t.Context(), order{}) },
			func(context.Context, restEvent) (any, error) { runs++; return result, nil }, newFixture().options()...)
		for range 2 {
			_, _ = h(t.Context(), restEvent{})
		}
		return runs
	}
	h := middleware.WithLock(key, func(context.Context, order) (R, error) { runs++; return result, nil }, newFixture().options()...)
	for range 2 {
		if _, err := h(t.Context(), order{}); err != nil {
			t.Errorf("%T: %v", result, err)
		}
	}
	return runs
}

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
	if _, err := h(t.Context(), order{ID: "5", Item: 5}); err != nil {
		t.Fatal(err)
	}
	return held, call(order{ID: "5", Item: 5}), call(order{ID: "4", Item: 4})
}

// TestHTTPOptionsWin shows that an explicit option takes the place of the
// default for HTTP.
func TestHTTPOptionsWin(t *testing.T) {
	t.Parallel()
	busy := middleware.Respond(restResponse{StatusCode: 425})
	asRead := middleware.RespondWith(func(_ context.Context, err error) (restResponse, error) {
		return restResponse{StatusCode: 418, Body: fmt.Sprintf("%T", err)}, nil
	})
	onlyHeld := middleware.RespondWith(func(_ context.Context, err error) (restResponse, error) {
		if errors.Is(err, lock.ErrHeld) {
			return restResponse{StatusCode: 503}, nil
		}
		return restResponse{}, err
	})
	fails := errors.New("fails")
	failing := middleware.RespondWith(func(context.Context, error) (restResponse, error) { return restResponse{}, fails })
	for name, c := range map[string]struct {
		opts                   []middleware.Option
		held, completed, stale int // statuses; 0: an error
	}{
		"defaults":                  {nil, 409, 200, 409},
		"OnHeld(Fail)":              {[]middleware.Option{middleware.OnHeld(middleware.Fail)}, 0, 200, 409},
		"OnHeld(Respond)":           {[]middleware.Option{middleware.OnHeld(busy)}, 425, 200, 409},
		"OnHeld(Wait)":              {[]middleware.Option{middleware.OnHeld(middleware.Wait(time.Millisecond))}, 409, 200, 409},
		"OnCompleted(Fail)":         {[]middleware.Option{middleware.OnCompleted(middleware.Fail)}, 409, 0, 0},
		"OnCompleted(Replay)":       {[]middleware.Option{middleware.OnCompleted(middleware.Replay)}, 409, 200, 409},
		"RespondWith":               {[]middleware.Option{asRead}, 418, 200, 418},
		"RespondWith, OnHeld(Fail)": {[]middleware.Option{asRead, middleware.OnHeld(middleware.Fail)}, 418, 200, 418},
		"RespondWith, Respond":      {[]middleware.Option{asRead, middleware.OnHeld(busy)}, 425, 200, 418},
		"RespondWith, both Fail":    {[]middleware.Option{asRead, middleware.OnCompleted(middleware.Fail)}, 418, 418, 418},
		"RespondWith, in part":      {[]middleware.Option{onlyHeld}, 503, 200, 409},
		"RespondWith that fails":    {[]middleware.Option{failing}, 0, 200, 0},
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
				if r.StatusCode == http.StatusConflict && what != "held" && r.Headers["Retry-After"] != "" {
					t.Errorf("%s: Retry-After %s", what, r.Headers["Retry-After"])
				}
			}
		})
	}
}

// TestRespondWithSeesEveryError shows that RespondWith gets the errors that are
// not the client's business too, that its own error takes their place, and that
// handlers of other results can use it.
func TestRespondWithSeesEveryError(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.faulty.Always(locktest.Acquire, locktest.Deny)
	text := middleware.RespondWith(func(_ context.Context, err error) (string, error) { return fmt.Sprintf("%T", err), nil })
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
		"bytes":       {middleware.RespondWith(func(context.Context, error) ([]byte, error) { return []byte(`{"a": 1}`), nil }), `{"a": 1}`},
		"raw message": {middleware.RespondWith(func(context.Context, error) (json.RawMessage, error) { return json.RawMessage(`{"a": 1}`), nil }), `{"a": 1}`},
		"a value":     {middleware.RespondWith(func(context.Context, error) (order, error) { return order{ID: "x"}, nil }), `{"id":"x","item":0}`},
		"nothing":     {middleware.RespondWith(func(context.Context, error) (any, error) { return nil, nil }), `null`},
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

// TestHTTPCallbacksThatPanic shows that a panic of CompletedIf or RespondWith
// reaches the runtime, and that no lock is left.
func TestHTTPCallbacksThatPanic(t *testing.T) { // F48
	t.Parallel()
	for name, opt := range map[string]middleware.Option{
		"CompletedIf": middleware.CompletedIf(func(restResponse) bool { panic("callback") }),
		"RespondWith": middleware.RespondWith(func(context.Context, error) (restResponse, error) { panic("callback") }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			key := func(_ context.Context, o order) (lock.Key, error) {
				if name == "RespondWith" {
					return lock.Key{}, errRefused
				}
				return byOrder(t.Context(), o)
			}
			h := middleware.WithLock(key, func(context.Context, order) (restResponse, error) { return restResponse{StatusCode: 200}, nil }, f.options(opt)...)
			func() {
				defer func() {
					if p := recover(); p != "callback" {
						t.Errorf("the caller got %v", p)
					}
				}()
				_, _ = h(t.Context(), order{ID: "1"})
			}()
			if err := mustRun(f)(t.Context(), order{ID: "1"}); err != nil {
				t.Errorf("the event does not run: %v", err)
			}
		})
	}
}

// urlResponse is a streaming response for the tests of its body.
func urlResponse(body io.Reader) *events.LambdaFunctionURLStreamingResponse {
	return &events.LambdaFunctionURLStreamingResponse{StatusCode: 200, Headers: map[string]string{"a": "b"}, Body: body}
}

// TestStreamedResponseIsNotBuffered shows that the body is recorded while it is
// streamed: the reader gets each part as soon as the handler has written it.
func TestStreamedResponseIsNotBuffered(t *testing.T) {
	t.Parallel()
	f := newFixture()
	r, w := io.Pipe()
	h := streamed(f, func() *events.LambdaFunctionURLStreamingResponse { return urlResponse(r) })
	out, err := h(t.Context(), order{ID: "1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"first", "second"} {
		go func() { _, _ = io.WriteString(w, part) }()
		buf := make([]byte, 10)
		if n, err := out.Body.Read(buf); string(buf[:n]) != part || err != nil { // would wait for ever for the end
			t.Errorf("%q, %v; want %q", buf[:n], err, part)
		}
	}
	f.want(t, lock.OutcomeAcquired)
	_ = w.Close()
	if _, err := io.ReadAll(out); err != nil {
		t.Error(err)
	}
	again, err := h(t.Context(), order{ID: "1"})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(again.Body); string(b) != "firstsecond" || again.Headers["a"] != "b" || again.Headers["Idempotent-Replayed"] != "true" || err != nil {
		t.Errorf("%q, %v, %v", b, again.Headers, err)
	}
}

// TestStreamedResponseThatFails shows that a retry runs if the client did not
// get the whole body of the first response.
func TestStreamedResponseThatFails(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(*events.LambdaFunctionURLStreamingResponse){
		"half of it": func(r *events.LambdaFunctionURLStreamingResponse) {
			if b, err := io.ReadAll(r); err == nil {
				t.Errorf("%q without an error", b)
			}
		},
		"closed early": func(r *events.LambdaFunctionURLStreamingResponse) {
			if _, err := r.Body.Read(make([]byte, 1)); err != nil {
				t.Error(err)
			}
			_ = r.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			h := streamed(f, func() *events.LambdaFunctionURLStreamingResponse {
				return urlResponse(io.MultiReader(strings.NewReader("begun"), brokenReader{}))
			})
			for range 2 {
				out, err := h(t.Context(), order{ID: "1"})
				if err != nil {
					t.Fatal(err)
				}
				use(out)
			}
			f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeAcquired, lock.OutcomeReleased)
		})
	}
}

// TestObserverThatPanicsAtTheEndOfAStream shows that the lock is released if
// the observer panics when it hears that a body is too long to be stored.
func TestObserverThatPanicsAtTheEndOfAStream(t *testing.T) { // F48
	t.Parallel()
	f := newFixture()
	observe := middleware.Observe(func(_ context.Context, o lock.Observation) {
		if o.Outcome == lock.OutcomeResultDropped {
			panic("observer")
		}
	})
	h := middleware.WithLock(byOrder, func(context.Context, order) (*events.LambdaFunctionURLStreamingResponse, error) {
		return urlResponse(strings.NewReader(strings.Repeat("x", 1<<20))), nil
	}, f.options(observe)...)
	out, err := h(t.Context(), order{ID: "1"})
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if p := recover(); p != "observer" {
				t.Errorf("the reader got %v", p)
			}
		}()
		_, _ = io.ReadAll(out)
	}()
	if err := mustRun(f)(t.Context(), order{ID: "1"}); err != nil {
		t.Errorf("the event does not run again: %v", err)
	}
}

// oddReader claims to have read more than there is room for.
type oddReader struct{ n int }

func (r oddReader) Read([]byte) (int, error) { return r.n, io.EOF }

// TestStreamOfAnOddReader shows that a wrong count of a body reaches the
// runtime, as without a wrapper.
func TestStreamOfAnOddReader(t *testing.T) {
	t.Parallel()
	for _, n := range []int{-1, 1000} {
		out, err := streamed(newFixture(), func() *events.LambdaFunctionURLStreamingResponse { return urlResponse(oddReader{n}) })(t.Context(), order{ID: "1"})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := out.Body.Read(make([]byte, 10)); got != n || err != io.EOF {
			t.Errorf("%d, %v", got, err)
		}
	}
}

// TestReplayAfterADeployment shows that a stored response is replayed by a
// handler of another result type, and that it is never a zero response if it
// does not fit.
func TestReplayAfterADeployment(t *testing.T) {
	t.Parallel()
	before := map[string]func(f *fixture){
		"buffered": deployed(t, func() restResponse { return restResponse{StatusCode: 201, Body: "first"} }),
		"streamed": deployed(t, func() *events.APIGatewayProxyStreamingResponse {
			return &events.APIGatewayProxyStreamingResponse{StatusCode: 201, Body: strings.NewReader("first")}
		}),
		"text":   deployed(t, func() string { return "first" }),
		"object": deployed(t, func() map[string]int { return map[string]int{"n": 1} }),
		"broken": deployed(t, func() map[string]any {
			return map[string]any{"statusCode": 201, "isBase64Encoded": true, "body": "!"}
		}),
	}
	for name, c := range map[string]struct {
		first  string
		want   func(f *fixture) (int, string)
		status int
		body   string
	}{
		"stream of buffered":     {"buffered", now[*events.APIGatewayProxyStreamingResponse](t), 201, "first"},
		"buffered of stream":     {"streamed", now[restResponse](t), 201, "first"},
		"other stream":           {"streamed", now[*events.LambdaFunctionURLStreamingResponse](t), 201, "first"},
		"anything of a stream":   {"streamed", now[any](t), 201, "first"},
		"HTTP API of an object":  {"object", now[*events.APIGatewayV2HTTPResponse](t), 200, `{"n":1}`},
		"REST of an object":      {"object", now[restResponse](t), 409, ""},
		"REST of text":           {"text", now[restResponse](t), 409, ""},
		"HTTP API of text":       {"text", now[events.APIGatewayV2HTTPResponse](t), 409, ""},
		"stream of text":         {"text", now[*events.LambdaFunctionURLStreamingResponse](t), 409, ""},
		"stream of a broken one": {"broken", now[*events.LambdaFunctionURLStreamingResponse](t), 409, ""},
		"reader of buffered":     {"buffered", now[io.Reader](t), 409, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			before[c.first](f)
			if status, body := c.want(f); status != c.status || c.body != "" && body != c.body {
				t.Errorf("%d %q, want %d %q", status, body, c.status, c.body)
			}
		})
	}
}

// deployed returns a function that completes an event with that result.
func deployed[R any](t *testing.T, result func() R) func(*fixture) {
	return func(f *fixture) {
		out, err := middleware.WithLock(byOrder, func(context.Context, order) (R, error) { return result(), nil }, f.options(middleware.OnCompleted(middleware.Replay))...)(t.Context(), order{ID: "1"})
		if _, err := sent(t, keptAsJSON(out), err); err != nil {
			t.Error(err)
		}
	}
}

// keptAsJSON returns a result that is not a response as one, so that it can be
// sent.
func keptAsJSON(out any) any {
	if _, ok := out.(string); ok {
		return map[string]any{}
	}
	if m, ok := out.(map[string]any); ok && m["body"] == "!" {
		return map[string]any{}
	}
	return out
}

// now returns a function that repeats the event for a handler with the result
// type R, and returns the status and the body that the client gets.
func now[R any](t *testing.T) func(*fixture) (int, string) {
	return func(f *fixture) (int, string) {
		var out any
		var err error
		if reflect.TypeFor[R]() == reflect.TypeFor[any]() || reflect.TypeFor[R]() == reflect.TypeFor[io.Reader]() {
			key := func(ctx context.Context, _ restEvent) (lock.Key, error) { return byOrder(ctx, order{ID: "1"}) }
			out, err = middleware.WithLock(key, func(context.Context, restEvent) (R, error) { t.Error("ran"); return *new(R), nil }, f.options()...)(t.Context(), restEvent{})
		} else {
			out, err = middleware.WithLock(byOrder, func(context.Context, order) (R, error) { t.Error("ran"); return *new(R), nil }, f.options()...)(t.Context(), order{ID: "1"})
		}
		r, err := sent(t, out, err)
		if err != nil {
			t.Error(err)
		}
		return r.status, r.body
	}
}

// TestHTTPOfOtherResults shows that a handler of requests whose result is
// not a response is completed and replayed, but cannot answer for itself.
func TestHTTPOfOtherResults(t *testing.T) {
	t.Parallel()
	f := newFixture()
	var h func(context.Context, v2Event) (order, error)
	key := func(ctx context.Context, e v2Event) (lock.Key, error) { return byOrder(ctx, order{ID: e.Body}) }
	h = middleware.WithLock(key, func(ctx context.Context, e v2Event) (order, error) {
		if _, err := h(context.Background(), v2Event{Body: "other"}); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("held: %v", err)
		}
		return order{ID: "first"}, nil
	}, f.options()...)
	for range 2 {
		if out, err := h(t.Context(), v2Event{Body: "1"}); out != (order{ID: "first"}) || err != nil {
			t.Errorf("%+v, %v", out, err)
		}
	}
	f.want(t, lock.OutcomeAcquired, lock.OutcomeHeld, lock.OutcomeReleased, lock.OutcomeAlreadyCompleted)
	reader := middleware.WithLock(key, func(context.Context, v2Event) (io.Reader, error) { return strings.NewReader("x"), nil }, f.options()...)
	r, err := reader(t.Context(), v2Event{Body: "2"})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); string(b) != "x" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	r, err = reader(t.Context(), v2Event{Body: "2"})
	if got, err := sent(t, r, err); got.status != http.StatusConflict || err != nil {
		t.Errorf("a stream that is not stored: %+v, %v; want status 409", got, err)
	}
}

// TestHTTPWithoutResult shows that a handler of requests that returns only an
// error is skipped like any other.
func TestHTTPWithoutResult(t *testing.T) {
	t.Parallel()
	f := newFixture()
	key := func(ctx context.Context, e v2Event) (lock.Key, error) { return byOrder(ctx, order{ID: e.Body}) }
	h := middleware.WithLock(key, func(context.Context, v2Event) error { return nil }, f.options()...)
	for range 2 {
		if err := h(t.Context(), v2Event{Body: "1"}); err != nil {
			t.Error(err)
		}
	}
	f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeAlreadyCompleted)
}

// TestNothingToWorkOnOverHTTP shows that a client gets a valid response if the
// key function says that there is nothing to work on.
func TestNothingToWorkOnOverHTTP(t *testing.T) {
	t.Parallel()
	ignore := fmt.Errorf("no request: %w", keyfuncs.ErrIgnore)
	f := newFixture()
	if r, err := refused[restResponse](t, f, ignore); r.StatusCode != http.StatusNoContent || r.Body != "" || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := refused[*events.ALBTargetGroupResponse](t, f, ignore); r.StatusCode != http.StatusNoContent || r.StatusDescription != "204 No Content" || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	f.want(t, middleware.OutcomeIgnored, middleware.OutcomeIgnored)
}

// TestErrNoLock shows that the handler runs without a lock and without a
// request to the store, whatever the key function wraps around ErrNoLock, and
// that the records of a batch may do without a lock too.
func TestErrNoLock(t *testing.T) {
	t.Parallel()
	f := newFixture()
	noLock := fmt.Errorf("no tenant: %w", keyfuncs.ErrNoLock)
	runs := 0
	h := middleware.WithLock(func(context.Context, order) (lock.Key, error) { return lock.Key{}, noLock }, func(ctx context.Context, _ order) (io.Reader, error) {
		runs++
		if _, ok := lock.FromContext(ctx); ok {
			t.Error("has a lease")
		}
		return strings.NewReader("x"), nil
	}, f.options()...)
	for range 2 {
		r, err := h(t.Context(), order{})
		if _, ok := r.(*strings.Reader); !ok || err != nil {
			t.Errorf("%T, %v; want the handler's own result", r, err)
		}
	}
	each := middleware.EachSQSMessage(func(context.Context, events.SQSMessage) (lock.Key, error) { return lock.Key{}, noLock },
		func(context.Context, events.SQSMessage) error { runs++; return nil }, f.options(middleware.Concurrency(1))...)
	if r, err := each(t.Context(), sqsBatch(message("a", ""), message("b", ""))); len(r.BatchItemFailures) != 0 || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if runs != 4 || f.faulty.Requests(locktest.Acquire) != 0 {
		t.Errorf("%d runs, %d requests", runs, f.faulty.Requests(locktest.Acquire))
	}
	f.want(t)
}

// TestFailOpenOverHTTP shows that a response is returned as it is if there is
// no lock.
func TestFailOpenOverHTTP(t *testing.T) { // F13
	t.Parallel()
	f := newFixture()
	f.faulty.Always(locktest.Acquire, locktest.Throttle)
	noLock := func(context.Context, order) (lock.Key, error) { return lock.Key{}, keyfuncs.ErrNoLock }
	for _, status := range []int{200, 503} {
		h := middleware.WithLock(noLock, func(context.Context, order) (*restResponse, error) { return &restResponse{StatusCode: status}, nil }, f.options()...)
		if r, err := h(t.Context(), order{}); r.StatusCode != status || r.Headers != nil || err != nil {
			t.Errorf("%+v, %v", r, err)
		}
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
		"CompletedIf(nil)": {func() { middleware.CompletedIf[int](nil) }, "CompletedIf(nil)"},
		"RespondWith, other type": {func() {
			middleware.WithLock(byOrder, rest, opts(middleware.RespondWith(func(context.Context, error) (int, error) { return 0, nil }))...)
		}, "return a events.APIGatewayProxyResponse"},
		"RespondWith of records": {func() {
			middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error { return nil }, opts(middleware.RespondWith(func(context.Context, error) (any, error) { return nil, nil }))...)
		}, "has none"},
		"RespondWith(nil)": {func() { middleware.RespondWith[int](nil) }, "RespondWith(nil)"},
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
}
