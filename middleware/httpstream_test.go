package middleware_test

import (
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

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
	out := expect.Value(h(t.Context(), order{ID: "1"}))(t)
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
	again := expect.Value(h(t.Context(), order{ID: "1"}))(t)
	if b, err := io.ReadAll(again.Body); string(b) != "firstsecond" || again.Headers["a"] != "b" || again.Headers["Idempotent-Replayed"] != "true" || err != nil {
		t.Errorf("%q, %v, %v", b, again.Headers, err)
	}
}

// TestLastBytesWithTheEndOfAStream shows that a body is replayed whole although
// it returns its last bytes together with io.EOF.
func TestLastBytesWithTheEndOfAStream(t *testing.T) { // F35
	t.Parallel()
	f := newFixture()
	h := streamed(f, func() *events.LambdaFunctionURLStreamingResponse {
		return urlResponse(iotest.DataErrReader(strings.NewReader("hello")))
	})
	for _, run := range []string{"first", "replayed"} {
		out := expect.Value(h(t.Context(), order{ID: "1"}))(t)
		if b, err := io.ReadAll(out.Body); string(b) != "hello" || err != nil {
			t.Errorf("%s: %q, %v", run, b, err)
		}
	}
	f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeAlreadyCompleted)
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
				out := expect.Value(h(t.Context(), order{ID: "1"}))(t)
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
	out := expect.Value(h(t.Context(), order{ID: "1"}))(t)
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
		out := expect.Value(streamed(newFixture(), func() *events.LambdaFunctionURLStreamingResponse { return urlResponse(oddReader{n}) })(t.Context(), order{ID: "1"}))(t)
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
		"bytes of text": deployed(t, func() map[string]any {
			return map[string]any{"statusCode": "201", "isBase64Encoded": true, "body": "Zmlyc3Q="}
		}),
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
		"HTTP API of an object":  {"object", now[*events.APIGatewayV2HTTPResponse](t), 409, ""}, // stored for no caller, and asked for by one
		"REST of an object":      {"object", now[restResponse](t), 409, ""},
		"REST of text":           {"text", now[restResponse](t), 409, ""},
		"HTTP API of text":       {"text", now[events.APIGatewayV2HTTPResponse](t), 409, ""},
		"stream of text":         {"text", now[*events.LambdaFunctionURLStreamingResponse](t), 409, ""},
		"stream of a broken one": {"broken", now[*events.LambdaFunctionURLStreamingResponse](t), 409, ""},
		"stream of text status":  {"bytes of text", now[*events.LambdaFunctionURLStreamingResponse](t), 409, ""},
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

// TestFailAfterADeployment shows that OnCompleted(Fail) counts also for a
// response that was stored before.
func TestFailAfterADeployment(t *testing.T) {
	t.Parallel()
	f := newFixture()
	deployed(t, func() restResponse { return restResponse{StatusCode: 201} })(f)
	h := middleware.WithLock(byOrder, func(context.Context, order) (restResponse, error) { t.Error("ran"); return restResponse{}, nil },
		f.options(middleware.OnCompleted(middleware.Fail))...)
	if got, err := h(t.Context(), order{ID: "1"}); !errors.Is(err, lock.ErrCompleted) {
		t.Errorf("%+v, %v", got, err)
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
	if m, ok := out.(map[string]any); ok && (m["body"] == "!" || m["statusCode"] == "201") {
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

// TestStreamOfUnknownEnd: a body that fails with Unknown makes the event
// interrupted, as an error of the handler does, and one that breaks off fails.
func TestStreamOfUnknownEnd(t *testing.T) { // F19
	t.Parallel()
	for name, c := range map[string]struct {
		breaks error
		ran    int
	}{
		"unknown": {middleware.Unknown(errors.New("no answer of the bank")), 1},
		"failed":  {errors.New("boom"), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			ran := 0
			h := middleware.WithLock(byOrder, func(context.Context, order) (*events.LambdaFunctionURLStreamingResponse, error) {
				ran++
				return urlResponse(io.MultiReader(strings.NewReader("x"), iotest.ErrReader(c.breaks))), nil
			}, f.options(middleware.OnInterrupted(middleware.Fail))...)
			for range 2 {
				r := expect.Value(h(t.Context(), order{ID: "7"}))(t)
				_, _ = io.ReadAll(r.Body)
			}
			if ran != c.ran {
				t.Errorf("ran %d times, want %d", ran, c.ran)
			}
		})
	}
}
