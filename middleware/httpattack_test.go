package middleware_test

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestHTTPNested shows that a request whose handler found another lock held, and
// which therefore asks the client to try again, runs when the client does.
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
		"client error":            {"apigateway-http", `{"statusCode":409,"headers":{"retry-after":"1"}}`, 2},
		"client error, text":      {"apigateway-rest", `{"statusCode":"423","headers":{"Retry-After":1}}`, 2},
		"of several values":       {"alb-multivalue", `{"statusCode":409,"multiValueHeaders":{"Retry-After":["1"]}}`, 2},
		"odd headers before":      {"alb-multivalue", `{"statusCode":409,"headers":[],"multiValueHeaders":{"Retry-After":["1"]}}`, 2},
		"accepted, poll later":    {"apigateway-http", `{"statusCode":202,"headers":{"retry-after":"1"}}`, 1},
		"redirect":                {"apigateway-http", `{"statusCode":303,"headers":{"retry-after":"1"}}`, 1},
		"without it":              {"apigateway-http", `{"statusCode":409,"headers":{"x-retry-after":"1"}}`, 1},
		"no headers":              {"apigateway-http", `{"statusCode":409,"headers":null}`, 1},
		"body that looks like it": {"apigateway-http", `{"statusCode":409,"body":"{\"headers\":{\"retry-after\":1}}"}`, 1},
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
			if got, err := h(t.Context(), order{ID: "1"}); err != nil || !reflect.DeepEqual(got, result) {
				t.Errorf("%v, %v, want %v", got, err, result)
			}
		}
	}
}

// TestHTTPByTheHandlersEvent shows that the handler's event counts where the key
// function takes a pointer, or an event of any type.
func TestHTTPByTheHandlersEvent(t *testing.T) {
	t.Parallel()
	key := lock.Key{Name: "n", Event: "e"}
	runs := 0
	busy := func() (ownResponse, error) { runs++; return ownResponse{Code: http.StatusServiceUnavailable}, nil }
	byAny := func(context.Context, any) (lock.Key, error) { return key, nil }
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

// callback is the event of a callback over HTTP, for a Function URL.
type callback = events.LambdaFunctionURLRequest

func handleIn(e callback) (h lock.Handle) {
	_ = json.Unmarshal([]byte(e.Body), &h)
	return h
}

// callbackFor returns the request with which somebody continues a lock.
func (r *fixture) callbackFor(t *testing.T, k lock.Key) callback {
	t.Helper()
	return callback{Body: string(toJSON(t, r.handedOver(t, k).Lock))}
}

// TestResumeOverHTTP shows a callback that is answered over HTTP: one that failed
// runs again with the same handle, and a duplicate gets the first response.
func TestResumeOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture()
	e := f.callbackFor(t, lock.Key{Name: "orders", Event: "1"})
	statuses := []int{503, 429, 0, 201}
	runs := 0
	h := middleware.Resume(handleIn, func(context.Context, callback) (events.LambdaFunctionURLResponse, error) {
		runs++
		return events.LambdaFunctionURLResponse{StatusCode: statuses[runs-1], Body: "paid"}, nil
	}, f.options()...)
	for i, want := range append(statuses, 201, 201) {
		got, err := h(t.Context(), e)
		if err != nil || got.StatusCode != want || got.Body != "paid" || (got.Headers["Idempotent-Replayed"] == "true") != (i >= len(statuses)) {
			t.Errorf("call %d: %+v, %v", i, got, err)
		}
	}
	if runs != len(statuses) {
		t.Errorf("%d runs", runs)
	}
}

// TestResumeTakesEveryOption shows that CompletedIf and RespondWith work for
// steps as for other handlers.
func TestResumeTakesEveryOption(t *testing.T) {
	t.Parallel()
	f := newFixture()
	s := f.handedOver(t, lock.Key{Name: "orders", Event: "1"})
	runs := 0
	h := middleware.Resume(handleOf, func(context.Context, step) (int, error) { runs++; return runs, nil }, f.options(
		middleware.OnCompleted(middleware.Fail),
		middleware.CompletedIf(func(n int) bool { return n == 2 }),
		middleware.RespondWith(func(context.Context, error) (int, error) { return -1, nil }))...)
	for _, want := range []int{1, 2, -1, -1} {
		if got, err := h(t.Context(), s); got != want || err != nil {
			t.Errorf("%d, %v, want %d", got, err, want)
		}
	}
	f.want(t, lock.OutcomeResumed, lock.OutcomeResumed, lock.OutcomeReleased, lock.OutcomeAlreadyCompleted, lock.OutcomeAlreadyCompleted)
}
