package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestHTTPNested shows that a request whose handler found another lock held,
// and which asks the client to try again, runs when the client does.
func TestHTTPNested(t *testing.T) { // F33
	t.Parallel()
	onEveryRoute(t, func(t *testing.T, r route, doc []byte) {
		f, runs := newFixture(), 0
		account := lock.Key{Name: "account"}
		inner := middleware.WithLock(func(context.Context, restEvent) (lock.Key, error) { return account, nil }, func(context.Context, restEvent) (restResponse, error) {
			runs++
			return restResponse{StatusCode: http.StatusCreated}, nil
		}, f.options()...)
		call := r(t, f, required, func() (reply, error) {
			out, err := inner(t.Context(), restEvent{})
			return reply{status: out.StatusCode, headers: out.Headers, body: out.Body}, err
		})
		other := f.acquireElsewhere(t, account)
		got, err := call(doc)
		wantProblem(t, got, err, http.StatusConflict, "another request for the same resource")
		_ = other.Release()
		for _, mark := range []string{"", "true"} {
			if got, err := call(doc); err != nil || got.status != http.StatusCreated || got.mark() != mark {
				t.Errorf("%+v, %v; want status 201, mark %q", got, err, mark)
			}
		}
		if runs != 1 {
			t.Errorf("%d runs", runs)
		}
	})
}

// TestHTTPRetryAfter shows which responses with Retry-After let the retry run.
func TestHTTPRetryAfter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, result string
		runs         int
	}{
		"client error":            {"apigateway-http", `{"statusCode":404,"headers":{"retry-after":"1"}}`, 2},
		"client error, text":      {"apigateway-rest", `{"statusCode":"404","headers":{"Retry-After":1}}`, 2},
		"of several values":       {"alb-multivalue", `{"statusCode":404,"multiValueHeaders":{"Retry-After":["1"]}}`, 2},
		"odd headers before":      {"alb-multivalue", `{"statusCode":404,"headers":[],"multiValueHeaders":{"Retry-After":["1"]}}`, 2},
		"lowest client error":     {"apigateway-http", `{"statusCode":400,"headers":{"retry-after":"1"}}`, 2},
		"accepted, poll later":    {"apigateway-http", `{"statusCode":202,"headers":{"retry-after":"1"}}`, 1},
		"redirect":                {"apigateway-http", `{"statusCode":303,"headers":{"retry-after":"1"}}`, 1},
		"without it":              {"apigateway-http", `{"statusCode":404,"headers":{"x-retry-after":"1"}}`, 1},
		"no headers":              {"apigateway-http", `{"statusCode":404,"headers":null}`, 1},
		"body that looks like it": {"apigateway-http", `{"statusCode":404,"body":"{\"headers\":{\"retry-after\":1}}"}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			h := middleware.WithLock(byDoc, lambda.Handler(rawFunc(func([]byte) ([]byte, error) { runs++; return []byte(c.result), nil })), newFixture().options()...)
			for range 2 {
				if _, err := h.Invoke(t.Context(), gatewayEvent(t, c.file)); err != nil {
					t.Error(err)
				}
			}
			if runs != c.runs {
				t.Errorf("%d runs, want %d", runs, c.runs)
			}
		})
	}
}

// TestReplayOfAFieldNamedStreamed shows that a result of the user's is replayed
// whatever it is called.
func TestReplayOfAFieldNamedStreamed(t *testing.T) { // F35
	t.Parallel()
	for _, result := range []any{
		map[string]any{"streamed": "yes"},
		map[string]any{"streamed": "functionUrl", "statusCode": json.Number("200"), "body": "b"},
		map[string]any{"streamed": "restApi", "isBase64Encoded": true, "body": "!"},
	} {
		h := middleware.WithLock(byOrder, func(context.Context, order) (any, error) { return result, nil }, newFixture().options(middleware.OnCompleted(middleware.Replay))...)
		for range 2 {
			got, err := h(t.Context(), order{ID: "1"})
			if m, ok := got.(map[string]any); ok {
				delete(m, "headers") // the mark, if the result has a status
			}
			if err != nil || !reflect.DeepEqual(got, result) {
				t.Errorf("%v, %v, want %v", got, err, result)
			}
		}
	}
}

// TestHTTPByTheHandlersEvent shows that the handler's event counts where the
// key function takes a pointer, or an event of any type.
func TestHTTPByTheHandlersEvent(t *testing.T) {
	t.Parallel()
	key := lock.Key{Name: "n", Event: "e"}
	runs := 0
	busy := func() (ownResponse, error) { runs++; return ownResponse{Code: http.StatusServiceUnavailable}, nil }
	byAny := func(context.Context, any) (lock.Key, error) { return key, nil }
	wantPanic(t, func() {
		middleware.WithLock(byAny, func(context.Context, restEvent) (ownResponse, error) { return busy() }, newFixture().options(middleware.OnHeld(middleware.Skip))...)
	}, "empty response")
	for name, call := range map[string]func(f *fixture) (ownResponse, error){
		"value": func(f *fixture) (ownResponse, error) {
			return middleware.WithLock(byAny, func(context.Context, restEvent) (ownResponse, error) { return busy() }, f.options()...)(t.Context(), restEvent{})
		},
		"pointer": func(f *fixture) (ownResponse, error) {
			return middleware.WithLock(byAny, func(context.Context, *restEvent) (ownResponse, error) { return busy() }, f.options()...)(t.Context(), &restEvent{})
		},
		"key of a pointer": func(f *fixture) (ownResponse, error) {
			byPointer := func(context.Context, *restEvent) (lock.Key, error) { return key, nil }
			return middleware.WithLock(byPointer, func(context.Context, *restEvent) (ownResponse, error) { return busy() }, f.options()...)(t.Context(), &restEvent{})
		},
		"decoded for the key alone": func(f *fixture) (ownResponse, error) {
			byEvent := func(context.Context, restEvent) (lock.Key, error) { return key, nil }
			return middleware.WithLock(byEvent, func(context.Context, json.RawMessage) (ownResponse, error) { return busy() }, f.options()...)(t.Context(), json.RawMessage("{}"))
		},
		"several keys": func(f *fixture) (ownResponse, error) {
			return middleware.WithLocks(keyfuncs.All(byAny), func(context.Context, restEvent) (ownResponse, error) { return busy() }, f.options()...)(t.Context(), restEvent{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			runs = 0
			for range 2 {
				if got, err := call(f); err != nil || got.Code != http.StatusServiceUnavailable {
					t.Errorf("%+v, %v", got, err)
				}
			}
			other := f.acquireElsewhere(t, key)
			defer func() { _ = other.Release() }()
			if got, err := call(f); err != nil || got.Code != http.StatusConflict || runs != 2 {
				t.Errorf("%+v, %v after %d runs", got, err, runs)
			}
		})
	}
}

// panickingJSON cannot be encoded.
type panickingJSON struct{}

func (panickingJSON) MarshalJSON() ([]byte, error) { panic("boom") }

// TestEventThatPanicsWhenItIsEncoded shows that no lock stays held when a test
// or another wrapper passes an odd event.
func TestEventThatPanicsWhenItIsEncoded(t *testing.T) { // F48
	t.Parallel()
	f := newFixture()
	h := middleware.WithLock(keyfuncs.Static("n"), func(context.Context, any) (any, error) { return nil, nil }, f.options()...)
	func() {
		defer func() { _ = recover() }()
		_, _ = h(t.Context(), map[string]any{"requestContext": panickingJSON{}})
		t.Error("did not panic")
	}()
	f.want(t)
	_ = f.acquireElsewhere(t, lock.Key{Name: "n"}).Release()
}

// lateWriter changes its response while the body is read.
type lateWriter struct {
	headers map[string]string
	multi   map[string][]string
	cookies []string
	body    *strings.Reader
}

func (w lateWriter) Read(p []byte) (int, error) {
	w.headers["Content-Type"], w.headers["Late"] = "late", "late"
	w.multi["A"][0] = "late"
	w.cookies[0] = "late"
	return w.body.Read(p)
}

// TestResponseThatChangesWhileItIsStreamed shows that the replay has the head
// that was sent, whatever the handler does with its maps afterwards.
func TestResponseThatChangesWhileItIsStreamed(t *testing.T) {
	t.Parallel()
	h := middleware.WithLock(keyfuncs.Once(keyfuncs.ByField(func(e restEvent) string { return e.Path })), func(context.Context, restEvent) (*events.APIGatewayProxyStreamingResponse, error) {
		w := lateWriter{map[string]string{"Content-Type": "text/plain"}, map[string][]string{"A": {"b"}}, []string{"c=d"}, strings.NewReader("body")}
		return &events.APIGatewayProxyStreamingResponse{StatusCode: 201, Headers: w.headers, MultiValueHeaders: w.multi, Cookies: w.cookies, Body: w}, nil
	}, newFixture().options()...)
	for i, want := range []map[string]string{
		{"content-type": "text/plain", "a": "b", "set-cookie": "c=d"},
		{"content-type": "text/plain", "a": "b", "set-cookie": "c=d", "idempotent-replayed": "true"},
	} {
		out, err := h(t.Context(), restEvent{Path: "/orders", Headers: map[string]string{"Authorization": "Bearer a"}})
		if err != nil || i > 0 && !slices.Equal(out.Cookies, []string{"c=d"}) {
			t.Errorf("%+v, %v", out, err)
		}
		if got, err := sent(t, out, err); err != nil || got.body != "body" || !maps.Equal(got.headers, want) {
			t.Errorf("%+v, %v, want headers %v", got, err, want)
		}
	}
}

// api starts a handler of a Function URL that streams its answers, of which the
// first has status 503.
func api(bool) {
	runs := 0
	h := func(context.Context, events.LambdaFunctionURLRequest) (*events.LambdaFunctionURLStreamingResponse, error) {
		runs++
		status := http.StatusCreated
		if runs == 1 {
			status = http.StatusServiceUnavailable
		}
		return &events.LambdaFunctionURLStreamingResponse{
			StatusCode: status, Headers: map[string]string{"Content-Type": "text/plain"}, Cookies: []string{"a=b", "c=d"},
			Body: strings.NewReader(fmt.Sprintf("run %d of \x00\xff", runs)),
		}, nil
	}
	start(keyfuncs.IdempotencyKey[events.LambdaFunctionURLRequest], h)(true)
}

// TestStreamedAPIInTheRuntime shows the answers of a Function URL through the
// runtime loop of aws-lambda-go.
func TestStreamedAPIInTheRuntime(t *testing.T) {
	t.Parallel()
	p := platform(t, "API", true)
	doc := gatewayEvent(t, "functionurl")
	for i, c := range []struct {
		doc  []byte
		want string
	}{
		{doc, `{"statusCode":503,"headers":{"Content-Type":"text/plain"},"cookies":["a=b","c=d"]}` + "\x00\x00\x00\x00\x00\x00\x00\x00run 1 of \x00\xff"},
		{doc, `{"statusCode":201,"headers":{"Content-Type":"text/plain"},"cookies":["a=b","c=d"]}` + "\x00\x00\x00\x00\x00\x00\x00\x00run 2 of \x00\xff"},
		{doc, `{"statusCode":201,"headers":{"Content-Type":"text/plain","Idempotent-Replayed":"true"},"cookies":["a=b","c=d"]}` + "\x00\x00\x00\x00\x00\x00\x00\x00run 2 of \x00\xff"},
		{edited(t, doc, withOtherBody), `{"statusCode":422,`},
		{edited(t, doc, withoutHeader), `{"statusCode":400,`},
		{doc, `{"statusCode":201,"headers":{"Content-Type":"text/plain","Idempotent-Replayed":"true"},`},
	} {
		r, err := p.Invoke(t.Context(), locallambda.Invocation{Payload: c.doc})
		if err != nil || r.Outcome != locallambda.Succeeded || r.ContentType != "application/vnd.awslambda.http-integration-response" ||
			string(r.Payload) != c.want && (!strings.HasSuffix(c.want, ",") || !strings.HasPrefix(string(r.Payload), c.want)) {
			t.Errorf("call %d: %s %s %q, %v; want %q", i, r.Outcome, r.ContentType, r.Payload, err, c.want)
		}
	}
}

// TestProblemOfACompletedRequest shows that the client is told why its request
// does not run: a stale one because of a later one.
func TestProblemOfACompletedRequest(t *testing.T) {
	t.Parallel()
	_, _, stale := occupied(t)
	out, err := stale()
	got, err := sent(t, out, err)
	wantProblem(t, got, err, http.StatusConflict, "a later request for the same resource")
}

// TestProblemOfAReader shows that a handler declared with an io.Reader answers
// with the streaming response of its gateway.
func TestProblemOfAReader(t *testing.T) {
	t.Parallel()
	refuse := errors.Join(&lock.NoKeyError{Field: "f", Reason: "is odd", Client: true})
	for name, c := range map[string]struct {
		call func() (io.Reader, error)
		want io.Reader
	}{
		"REST API": {readerBehind[restEvent](refuse), &events.APIGatewayProxyStreamingResponse{}},
		"HTTP API": {readerBehind[v2Event](refuse), &events.LambdaFunctionURLStreamingResponse{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.call()
			if err != nil || reflect.TypeOf(got) != reflect.TypeOf(c.want) {
				t.Errorf("%T, %v, want a %T", got, err, c.want)
			}
		})
	}
}

// readerBehind returns a call of a handler whose key function fails.
func readerBehind[E any](keyErr error) func() (io.Reader, error) {
	key := func(context.Context, E) (lock.Key, error) { return lock.Key{}, keyErr }
	h := middleware.WithLock(key, func(context.Context, E) (io.Reader, error) { return nil, nil }, newFixture().options()...)
	return func() (io.Reader, error) { return h(context.Background(), *new(E)) }
}

// TestNilStreamIsReplayed shows that an answer that the gateway makes of null
// is replayed as null.
func TestNilStreamIsReplayed(t *testing.T) {
	t.Parallel()
	runs := 0
	h := middleware.WithLock(byOrder, func(context.Context, order) (*events.LambdaFunctionURLStreamingResponse, error) {
		runs++
		return nil, nil
	}, newFixture().options()...)
	for range 2 {
		if got, err := h(t.Context(), order{ID: "1"}); got != nil || err != nil || runs != 1 {
			t.Errorf("%+v, %v after %d runs", got, err, runs)
		}
	}
}

// TestReplayAddsNoFields shows that the mark goes only into the kind of headers
// that the first response has.
func TestReplayAddsNoFields(t *testing.T) {
	t.Parallel()
	h := middleware.WithLock(byOrder, func(context.Context, order) (restResponse, error) { return restResponse{StatusCode: 201}, nil }, newFixture().options()...)
	_, _ = h(t.Context(), order{ID: "1"})
	want := restResponse{StatusCode: 201, Headers: map[string]string{"Idempotent-Replayed": "true"}}
	if got, err := h(t.Context(), order{ID: "1"}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

// TestResponseIsStoredOnlyForReplay shows that a response that nobody will
// replay is neither stored nor missed.
func TestResponseIsStoredOnlyForReplay(t *testing.T) { // F35
	t.Parallel()
	t.Run("OnCompleted(Fail)", func(t *testing.T) {
		f := newFixture()
		h := middleware.WithLock(byOrder, func(context.Context, order) (restResponse, error) { return restResponse{StatusCode: 201}, nil }, f.options(middleware.OnCompleted(middleware.Fail))...)
		_, _ = h(t.Context(), order{ID: "1"})
		var completed *lock.CompletedError
		if _, err := h(t.Context(), order{ID: "1"}); !errors.As(err, &completed) || completed.Result != nil {
			t.Errorf("%v, result %s", err, completed.Result)
		}
	})
	t.Run("key without Event", func(t *testing.T) {
		f := newFixture()
		h := middleware.WithLock(keyfuncs.Static("n"), func(context.Context, restEvent) (io.Reader, error) { return strings.NewReader("x"), nil }, f.options()...)
		out, err := h(t.Context(), restEvent{})
		if _, readErr := io.ReadAll(out); err != nil || readErr != nil {
			t.Errorf("%v, %v", err, readErr)
		}
		f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased)
	})
}

// TestStreamInsideAnyIsReplayedAsAStream shows that the replay of a stream is
// one, also if the result is declared as any: a Function URL that streams does
// not look into JSON.
func TestStreamInsideAnyIsReplayedAsAStream(t *testing.T) {
	t.Parallel()
	for _, build := range []func(reply) any{asAny(urlStreamOf), asAny(apiStreamOf)} {
		first := build(created)
		h := middleware.WithLock(byOrder, func(context.Context, order) (any, error) { return first, nil }, newFixture().options(middleware.OnCompleted(middleware.Replay))...)
		for range 2 {
			out, err := h(t.Context(), order{ID: "1"})
			if reflect.TypeOf(out) != reflect.TypeOf(first) {
				t.Fatalf("%T, want %T", out, first)
			}
			if got, err := sent(t, out, err); err != nil || got.body != created.body {
				t.Errorf("%+v, %v", got, err)
			}
		}
	}
}
