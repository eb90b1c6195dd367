package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
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

// gatewayEvent returns a real event of a gateway.
func gatewayEvent(t *testing.T, file string) []byte {
	t.Helper()
	doc := expect.Value(os.ReadFile("../keyfuncs/testdata/" + file + ".json"))(t)
	return doc
}

// byDoc gives every event the same key.
func byDoc(context.Context, json.RawMessage) (lock.Key, error) {
	return lock.Key{Name: "n", Event: "e"}, nil
}

// TestHTTPResultOfOwnType shows that a result which becomes the body of a
// response holds neither the mark nor a problem document, and what OnError
// can do about it.
func TestHTTPResultOfOwnType(t *testing.T) {
	t.Parallel()
	type receipt struct{ Order, Problem string }
	asBody := middleware.OnError(func(_ context.Context, err error) (receipt, error) {
		return receipt{Problem: fmt.Sprintf("%T", err)}, nil
	})
	key := func(_ context.Context, r events.APIGatewayV2HTTPRequest) (lock.Key, error) {
		if r.Body == "" {
			return lock.Key{}, &lock.NoKeyError{Field: "body", Reason: "is missing", Client: true}
		}
		return lock.Key{Name: "n", Event: "e", Payload: r.Body}, nil
	}
	handler := func(context.Context, events.APIGatewayV2HTTPRequest) (receipt, error) {
		return receipt{Order: "17"}, nil
	}
	f := newFixture()
	plain := middleware.WithLock(key, handler, f.options()...)
	responding := middleware.WithLock(key, handler, f.options(asBody)...)
	for i, step := range []struct{ body, problem string }{
		{"a", ""}, {"a", ""}, {"b", "*lock.PayloadMismatchError"}, {"", "*lock.NoKeyError"},
	} {
		want := receipt{Order: "17"}
		if step.problem != "" {
			want = receipt{}
		}
		request := events.APIGatewayV2HTTPRequest{Body: step.body}
		if got, err := plain(t.Context(), request); got != want || (err != nil) != (step.problem != "") {
			t.Errorf("%d: %+v, %v; want %+v", i, got, err, want)
		}
		want.Problem = step.problem
		if got, err := responding(t.Context(), request); got != want || err != nil {
			t.Errorf("%d with OnError: %+v, %v; want %+v", i, got, err, want)
		}
	}
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
		"no request":             {event, `{"order": 7}`, `null`}, // skipped, as every other event
		"no request, a status":   {event, `{"statusCode":201}`, `{"headers":{"Idempotent-Replayed":"true"},"statusCode":201}`},
		"no request, a failure":  {event, `{"statusCode":503}`, ""},
		"no request, as text":    {event, `{"statusCode":"503"}`, ""},
		"its own mark":           {v2, `{"statusCode":200,"headers":{"idempotent-replayed":"false","n":12345678901234567890}}`, `{"headers":{"Idempotent-Replayed":"true","n":12345678901234567890},"statusCode":200}`},
		"odd headers":            {v2, `{"statusCode":200,"headers":[]}`, `{"headers":{"Idempotent-Replayed":"true"},"statusCode":200}`},
		"headers of both kinds":  {alb, `{"statusCode":200,"headers":{"a":"b"},"multiValueHeaders":{"a":["b"]}}`, `{"headers":{"Idempotent-Replayed":"true","a":"b"},"multiValueHeaders":{"Idempotent-Replayed":["true"],"a":["b"]},"statusCode":200}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			h := middleware.WithLock(byDoc, lambda.Handler(rawFunc(func([]byte) ([]byte, error) { runs++; return []byte(c.result), nil })), newFixture().options()...)
			for i, want := range []string{c.result, c.again, c.again} {
				if i > 0 && c.again == "" {
					want = c.result
				}
				out, err := h.Invoke(patience.Context(t), gatewayEvent(t, c.file))
				if string(out) != want || err != nil {
					t.Errorf("%d: %s, %v; want %s", i+1, out, err, want)
				}
				clear(out) // the caller may use the answer's buffer again
			}
			if again := runs == 3; again != (c.again == "") {
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
	restKey := func(ctx context.Context, e restEvent) (lock.Key, error) { return byOrder(ctx, order{ID: e.Body}) }
	rest := middleware.WithLock(restKey, func(context.Context, restEvent) (io.Reader, error) { return strings.NewReader("x"), nil }, f.options()...)
	r, err = rest(t.Context(), restEvent{Body: "3"})
	if err != nil {
		t.Fatal(err)
	}
	expect.Value(io.ReadAll(r))(t)
	r, err = rest(t.Context(), restEvent{Body: "3"})
	if got, err := sent(t, r, err); got.status != http.StatusConflict || err != nil {
		t.Errorf("a stream that is not stored, of a REST API: %+v, %v; want status 409", got, err)
	}
	f.forget()
	var completed *lock.CompletedError
	unstored := middleware.WithLock(key, func(context.Context, v2Event) (order, error) { return order{}, nil }, f.options(middleware.OnCompleted(middleware.Fail))...)
	expect.Value(unstored(t.Context(), v2Event{Body: "4"}))(t)
	if _, err := h(t.Context(), v2Event{Body: "4"}); !errors.As(err, &completed) {
		t.Errorf("a result that was not stored: %v", err)
	}
	f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeAlreadyCompleted) // nothing was dropped that had been stored
}

// TestHTTPEventInsideAny shows that a handler of anything answers over HTTP if
// it is given the event itself, and as usual if it is given nothing.
func TestHTTPEventInsideAny(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		event    any
		replayed bool
	}{
		"event": {v2Event{}, true}, "pointer": {&v2Event{}, true}, "other event": {events.SQSEvent{}, false}, "nothing": {nil, false}, "text": {"x", false},
		"list": {[]any{"x"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := func(ctx context.Context, _ any) (lock.Key, error) { return byOrder(ctx, order{ID: "1"}) }
			h := middleware.WithLock(key, func(context.Context, any) (any, error) { return "a body without a status", nil }, newFixture().options()...)
			for i := range 2 {
				if got, err := h(t.Context(), c.event); err != nil || (got != nil) != (i == 0 || c.replayed) {
					t.Errorf("%d: %v, %v", i+1, got, err)
				}
			}
		})
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
		expect.OK(t, h(t.Context(), v2Event{Body: "1"}))
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
	} else if len(r.Headers) == 0 || len(r.MultiValueHeaders) == 0 {
		t.Errorf("a load balancer fails without headers, of either kind: %+v", r)
	}
	f.want(t, middleware.OutcomeIgnored, middleware.OutcomeIgnored)
}

// TestErrNoLock shows that the handler runs without a lock and without a
// request to the store, whatever the key function wraps around ErrNoLock, and
// that the records of a batch may do without a lock too.
func TestErrNoLock(t *testing.T) {
	t.Parallel()
	f := newFixture()
	noLock := fmt.Errorf("%w: %w", keyfuncs.ErrNoLock, &lock.NoKeyError{Field: "tenant", Reason: "is missing", Err: errRecord})
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
	if runs != 4 || f.faulty.Requests(fault.Acquire) != 0 {
		t.Errorf("%d runs, %d requests", runs, f.faulty.Requests(fault.Acquire))
	}
	f.want(t, middleware.OutcomeNoLock, middleware.OutcomeNoLock, middleware.OutcomeNoLock, middleware.OutcomeNoLock)
}

// TestErrNoLockInParallel shows that records without a key do not wait for each
// other.
func TestErrNoLockInParallel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		met := make(chan struct{})
		key := keyfuncs.Func[any](func(context.Context, any) (lock.Key, error) { return lock.Key{}, keyfuncs.ErrNoLock })
		h := middleware.EachSQSMessage(key, func(ctx context.Context, _ events.SQSMessage) error {
			select {
			case met <- struct{}{}:
			case <-met:
			case <-ctx.Done():
				return ctx.Err()
			}
			return nil
		}, newFixture().options()...)
		r, err := h(ctx, sqsBatch(message("a", ""), message("b", "")))
		wantReturned(t, r, err)
	})
}

// TestFailOpenOverHTTP shows that a response is returned as it is if there is
// no lock.
func TestFailOpenOverHTTP(t *testing.T) { // F13
	t.Parallel()
	f := newFixture()
	f.faulty.Always(fault.Acquire, fault.Throttle)
	noLock := func(context.Context, order) (lock.Key, error) { return lock.Key{}, keyfuncs.ErrNoLock }
	for _, status := range []int{200, 503} {
		h := middleware.WithLock(noLock, func(context.Context, order) (*restResponse, error) { return &restResponse{StatusCode: status}, nil }, f.options()...)
		if r, err := h(t.Context(), order{}); r.StatusCode != status || r.Headers != nil || err != nil {
			t.Errorf("%+v, %v", r, err)
		}
	}
}
