package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// body is a stream with its own Close, content type and JSON form.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error                 { b.closed = true; return nil }
func (b *body) ContentType() string          { return "text/plain" }
func (b *body) MarshalJSON() ([]byte, error) { return nil, errors.New("not json") }

// streamed wraps a handler with that result.
func streamed[T any](f *fixture, result func() T) func(context.Context, order) (T, error) {
	return middleware.WithLock(byOrder, func(context.Context, order) (T, error) { return result(), nil }, f.options()...)
}

// TestStreamHoldsTheLockToItsEnd shows that the event is completed when its
// stream has been read.
func TestStreamHoldsTheLockToItsEnd(t *testing.T) {
	t.Parallel()
	f := newFixture()
	h := streamed(f, func() io.Reader { return strings.NewReader("hello") })
	out := expect.Value(h(t.Context(), order{ID: "1"}))(t)
	f.want(t, lock.OutcomeAcquired)
	if _, err := h(t.Context(), order{ID: "1"}); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("while it is streamed: %v", err)
	}
	f.want(t, lock.OutcomeHeld)
	if b, err := io.ReadAll(out); string(b) != "hello" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	f.want(t, lock.OutcomeReleased)
	expect.OK(t, out.(io.Closer).Close())
	if out, err := h(t.Context(), order{ID: "1"}); out != nil || err != nil {
		t.Errorf("duplicate: %v, %v; want skipped", out, err)
	}
}

// TestStreamClosedBeforeItsEndIsNotCompleted shows that the event runs again if
// its stream is closed early.
func TestStreamClosedBeforeItsEndIsNotCompleted(t *testing.T) {
	t.Parallel()
	f := newFixture()
	inner := &body{Reader: strings.NewReader("hello")}
	h := streamed(f, func() io.ReadCloser { return inner })
	for range 2 {
		out, err := h(t.Context(), order{ID: "1"})
		if err != nil || out == nil {
			t.Fatal(out, err)
		}
		expect.Value(out.Read(make([]byte, 2)))(t)
		if err := out.Close(); err != nil || !inner.closed {
			t.Errorf("%v, inner closed %v", err, inner.closed)
		}
		f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased)
	}
}

// closing is a stream that calls back when it is closed.
type closing struct {
	io.Reader
	closed func()
}

func (c closing) Close() error { c.closed(); return nil }

// TestStreamHoldsTheLockWhileItCloses shows that what a body does in Close is
// still done under the lock.
func TestStreamHoldsTheLockWhileItCloses(t *testing.T) {
	t.Parallel()
	f := newFixture()
	inner := closing{strings.NewReader("hello"), func() { f.want(t, lock.OutcomeAcquired) }}
	out := expect.Value(streamed(f, func() io.ReadCloser { return inner })(t.Context(), order{ID: "1"}))(t)
	expect.OK(t, out.Close())
	f.want(t, lock.OutcomeReleased)
}

// TestStreamThatFails shows that the stream's error reaches the reader, and
// that the event runs again. An error that wraps io.EOF, as that of a response
// which another server broke off, is not the end of the stream.
func TestStreamThatFails(t *testing.T) {
	t.Parallel()
	for _, broken := range []error{errors.New("broken"), io.ErrUnexpectedEOF, &url.Error{Op: "Get", Err: io.EOF}} {
		f, m := newFixture(), meter{}
		r, w := io.Pipe()
		w.CloseWithError(broken)
		h := middleware.WithLock(byOrder, func(context.Context, order) (any, error) { return r, nil }, f.options(m.option())...)
		out := expect.Value(h(t.Context(), order{ID: "1"}))(t)
		if _, err := io.ReadAll(out.(io.Reader)); err != broken {
			t.Errorf("%v, want the stream's own error", err)
		}
		if totals := m.one(t); totals.Requests != 2 {
			t.Errorf("%+v, want a claim and its release", totals)
		}
		if err := mustRun(f)(t.Context(), order{ID: "1"}); err != nil {
			t.Errorf("%v: the event does not run again: %v", broken, err)
		}
	}
}

// TestStreamThatBreaksOffInTheRuntime shows that a body decides about its event
// although the runtime tries to encode it as JSON first.
func TestStreamThatBreaksOffInTheRuntime(t *testing.T) {
	t.Parallel()
	for name, result := range map[string]io.Reader{
		"without a JSON form":    io.MultiReader(strings.NewReader("begun"), brokenReader{}),
		"that cannot be encoded": &body{Reader: brokenReader{}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			out := expect.Value(streamed(f, func() io.Reader { return result })(t.Context(), order{ID: "1"}))(t)
			if _, err := json.Marshal(out); err == nil {
				t.Error("a stream was encoded as JSON")
			}
			f.want(t, lock.OutcomeAcquired)
			if _, err := io.ReadAll(out); err == nil {
				t.Error("the body did not break off")
			}
			f.want(t, lock.OutcomeReleased)
			if err := mustRun(f)(t.Context(), order{ID: "1"}); err != nil {
				t.Errorf("the event does not run again: %v", err)
			}
		})
	}
}

// mustRun wraps a handler that fails for a completed event.
func mustRun(f *fixture) func(context.Context, order) error {
	return middleware.WithLock(byOrder, func(context.Context, order) error { return nil }, f.options(middleware.OnCompleted(middleware.Fail))...)
}

// TestContentTypeAndJSONFormOfAStream shows that the runtime sends a wrapped
// stream as it would send the bare one.
func TestContentTypeAndJSONFormOfAStream(t *testing.T) {
	t.Parallel()
	contentType := func(v any) string { return v.(interface{ ContentType() string }).ContentType() }
	f := newFixture()
	out, err := streamed(f, func() io.Reader { return &body{Reader: strings.NewReader("x")} })(t.Context(), order{ID: "1"})
	if err != nil || contentType(out) != "text/plain" {
		t.Errorf("%v, %v", contentType(out), err)
	}
	if _, err := json.Marshal(out); err == nil {
		t.Error("a stream was encoded as JSON")
	}
	_ = out.(io.Closer).Close()
	out, err = streamed(newFixture(), func() io.Reader { return strings.NewReader("x") })(t.Context(), order{ID: "1"})
	if err != nil || contentType(out) != "application/octet-stream" {
		t.Errorf("%v, %v: want what the runtime says of a reader without type", contentType(out), err)
	}
	if _, err := json.Marshal(out); err == nil {
		t.Error("a stream was encoded as JSON")
	}
	_ = out.(io.Closer).Close()

	f = newFixture()
	type both struct {
		io.Reader `json:"-"`
		A         string
	}
	out, err = streamed(f, func() io.Reader { return both{strings.NewReader("x"), "<a>"} })(t.Context(), order{ID: "1"})
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(out); err != nil || buf.String() != "{\"A\":\"<a>\"}\n" {
		t.Errorf("%s, %v: the runtime sends a reader that has a JSON form as JSON", buf.String(), err)
	}
	f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased)
}

// TestStreamingResponses shows that the body of a streaming response holds the
// lock, and that a response without a body does not.
func TestStreamingResponses(t *testing.T) {
	t.Parallel()
	read := func(t *testing.T, f *fixture, out io.ReadCloser, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		f.want(t, lock.OutcomeAcquired)
		b, err := io.ReadAll(out)
		if !bytes.Contains(b, []byte(`"statusCode":201`)) || !bytes.HasSuffix(b, []byte("hello")) || err != nil {
			t.Errorf("%q, %v", b, err)
		}
		f.want(t, lock.OutcomeReleased)
		expect.OK(t, out.Close())
	}
	f := newFixture()
	url, err := streamed(f, func() *events.LambdaFunctionURLStreamingResponse {
		return &events.LambdaFunctionURLStreamingResponse{StatusCode: 201, Body: strings.NewReader("hello")}
	})(t.Context(), order{ID: "1"})
	read(t, f, url, err)

	f = newFixture()
	gateway, err := streamed(f, func() *events.APIGatewayProxyStreamingResponse {
		return &events.APIGatewayProxyStreamingResponse{StatusCode: 201, Body: strings.NewReader("hello")}
	})(t.Context(), order{ID: "1"})
	read(t, f, gateway, err)

	f = newFixture()
	dynamic, err := streamed(f, func() any {
		return &events.LambdaFunctionURLStreamingResponse{StatusCode: 201, Body: strings.NewReader("hello")}
	})(t.Context(), order{ID: "1"})
	read(t, f, dynamic.(io.ReadCloser), err)

	for _, result := range []*events.LambdaFunctionURLStreamingResponse{{StatusCode: 204}, nil} {
		f = newFixture()
		if _, err := streamed(f, func() *events.LambdaFunctionURLStreamingResponse { return result })(t.Context(), order{ID: "1"}); err != nil {
			t.Error(err)
		}
		f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased)
	}
}

// TestReplayOfAStreamInsideAny shows that a streamed result is not stored,
// which is reported immediately.
func TestReplayOfAStreamInsideAny(t *testing.T) { // F35
	t.Parallel()
	f := newFixture()
	h := middleware.WithLock(byOrder, func(context.Context, order) (any, error) { return strings.NewReader("x"), nil },
		f.options(middleware.OnCompleted(middleware.Replay))...)
	out := expect.Value(h(t.Context(), order{ID: "1"}))(t)
	if b, err := io.ReadAll(out.(io.Reader)); string(b) != "x" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	f.want(t, lock.OutcomeAcquired, lock.OutcomeResultDropped, lock.OutcomeReleased)
	if out, err := h(t.Context(), order{ID: "1"}); out != nil || err != nil {
		t.Errorf("its duplicate: %v, %v; want skipped", out, err)
	}
}

// bodyThatPanics panics in one of its methods.
type bodyThatPanics struct{ in string }

func (b bodyThatPanics) at(method string) {
	if b.in == method {
		panic("body")
	}
}
func (b bodyThatPanics) Read([]byte) (int, error) { b.at("Read"); return 1, nil }
func (b bodyThatPanics) Close() error             { b.at("Close"); return nil }
func (b bodyThatPanics) MarshalJSON() ([]byte, error) {
	b.at("MarshalJSON")
	return nil, errors.New("not json")
}

// TestStreamThatPanics shows that the panic of a body reaches the runtime, and
// that the lock is released immediately.
func TestStreamThatPanics(t *testing.T) { // F35, F48
	t.Parallel()
	for method, use := range map[string]func(io.ReadCloser){
		"Read":        func(b io.ReadCloser) { _, _ = b.Read(make([]byte, 1)) },
		"Close":       func(b io.ReadCloser) { _ = b.Close() },
		"MarshalJSON": func(b io.ReadCloser) { _, _ = json.Marshal(b) },
	} {
		t.Run(method, func(t *testing.T) {
			f := newFixture()
			out := expect.Value(streamed(f, func() io.ReadCloser { return bodyThatPanics{method} })(t.Context(), order{ID: "1"}))(t)
			func() {
				defer func() {
					if p := recover(); p != "body" {
						t.Errorf("the caller got %v", p)
					}
				}()
				use(out)
			}()
			f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased)
			if err := mustRun(f)(t.Context(), order{ID: "1"}); err != nil {
				t.Errorf("the event does not run again: %v", err)
			}
		})
	}
}

// TestObserverOfADroppedStreamThatPanics shows that the lock is released, and
// the invocation measured, if the observer panics when it hears that a stream
// is not stored.
func TestObserverOfADroppedStreamThatPanics(t *testing.T) { // F48
	t.Parallel()
	f, m := newFixture(), meter{}
	observe := middleware.Observe(func(_ context.Context, o lock.Observation) {
		if o.Outcome == lock.OutcomeResultDropped {
			panic("observer")
		}
	})
	h := middleware.WithLock(byOrder, func(context.Context, order) (any, error) { return strings.NewReader("x"), nil },
		f.options(m.option(), middleware.OnCompleted(middleware.Replay), observe)...)
	func() {
		defer func() {
			if p := recover(); p != "observer" {
				t.Errorf("the caller got %v", p)
			}
		}()
		_, _ = h(t.Context(), order{ID: "1"})
	}()
	m.one(t)
	if err := mustRun(f)(t.Context(), order{ID: "1"}); err != nil {
		t.Errorf("the event does not run again: %v", err)
	}
}
