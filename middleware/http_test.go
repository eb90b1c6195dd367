package middleware_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/jmespath"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

var (
	errRefused    = &lock.NoKeyError{Field: "headers[Idempotency-Key]", Reason: `is "missing"`, Err: errors.New("the cause is not for clients"), Client: true}
	errOperator   = &lock.NoKeyError{Field: "version", Reason: "is not 2.0: use keyfuncs.IdempotencyKey"}
	problemHeader = map[string]string{"Content-Type": "application/problem+json"}
)

const refusedBody = `{"type":"about:blank","title":"Bad Request","status":400,"detail":"headers[Idempotency-Key] is \"missing\""}`

// refused calls a handler with the result type R whose key function returns
// keyErr.
func refused[R any](t *testing.T, f *fixture, keyErr error, more ...middleware.Option) (R, error) {
	t.Helper()
	key := func(context.Context, order) (lock.Key, error) { return lock.Key{}, keyErr }
	return middleware.WithLock(key, func(context.Context, order) (R, error) {
		t.Error("ran")
		return *new(R), nil
	}, f.options(more...)...)(t.Context(), order{ID: "1"})
}

// httpResults returns, for every result type that is an HTTP response, a
// function that calls such a handler, whose key function returns err, and
// returns what the client got and should get.
func httpResults(t *testing.T) map[string]func(f *fixture, err error) (got, want any, _ error) {
	rest := events.APIGatewayProxyResponse{StatusCode: http.StatusBadRequest, Headers: problemHeader, Body: refusedBody}
	v2 := events.APIGatewayV2HTTPResponse{StatusCode: http.StatusBadRequest, Headers: problemHeader, Body: refusedBody}
	url := events.LambdaFunctionURLResponse{StatusCode: http.StatusBadRequest, Headers: problemHeader, Body: refusedBody}
	alb := events.ALBTargetGroupResponse{
		StatusCode: http.StatusBadRequest, StatusDescription: "400 Bad Request", Body: refusedBody,
		Headers: problemHeader, MultiValueHeaders: map[string][]string{"Content-Type": {"application/problem+json"}},
	}
	return map[string]func(*fixture, error) (any, any, error){
		"REST API":      answerOf(t, rest),
		"*REST API":     answerOf(t, &rest),
		"HTTP API":      answerOf(t, v2),
		"*HTTP API":     answerOf(t, &v2),
		"Function URL":  answerOf(t, url),
		"*Function URL": answerOf(t, &url),
		"ALB":           answerOf(t, alb),
		"*ALB":          answerOf(t, &alb),
		"defined ALB":   answerOf(t, definedALB(alb)),
		"embedded ALB":  answerOf(t, &embeddedALB{alb}),
		"streamed REST API": answerOf(t, &events.APIGatewayProxyStreamingResponse{
			StatusCode: http.StatusBadRequest, Headers: problemHeader, Body: bytes.NewReader([]byte(refusedBody)),
		}),
		"streamed Function URL": answerOf(t, &events.LambdaFunctionURLStreamingResponse{
			StatusCode: http.StatusBadRequest, Headers: problemHeader, Body: bytes.NewReader([]byte(refusedBody)),
		}),
	}
}

// answerOf returns such a function for one result type.
func answerOf[R any](t *testing.T, want R) func(*fixture, error) (any, any, error) {
	return func(f *fixture, keyErr error) (any, any, error) {
		got, err := refused[R](t, f, keyErr)
		return got, want, err
	}
}

// TestBadRequest shows that a mistake that the client can mend is answered with
// status 400, also if the key function has wrapped the error.
func TestBadRequest(t *testing.T) { // F26
	t.Parallel()
	for name, call := range httpResults(t) {
		t.Run(name, func(t *testing.T) {
			for _, keyErr := range []error{errRefused, fmt.Errorf("tenant 7: %w", errRefused), errors.Join(errors.New("first"), errRefused)} {
				f := newFixture()
				if got, want, err := call(f, keyErr); !reflect.DeepEqual(got, want) || err != nil {
					t.Errorf("%v: %+v, %v; want %+v", keyErr, got, err, want)
				}
				f.want(t, lock.OutcomeRefused)
			}
		})
	}
}

// TestOperatorsMistakeIsNotABadRequest shows that an event of another source,
// or the wrong key function, stays an error that alarms see.
func TestOperatorsMistakeIsNotABadRequest(t *testing.T) {
	t.Parallel()
	_, otherSource := keyfuncs.IdempotencyKey[events.APIGatewayV2HTTPRequest](t.Context(), events.APIGatewayV2HTTPRequest{})
	_, noGateway := keyfuncs.HTTPBody[events.APIGatewayV2HTTPRequest](jmespath.Path("order"))(t.Context(), events.APIGatewayV2HTTPRequest{})
	outage := errors.New("database is down")
	for name, call := range httpResults(t) {
		t.Run(name, func(t *testing.T) {
			for _, keyErr := range []error{
				errOperator, fmt.Errorf("tenant 7: %w", errOperator), otherSource, noGateway, outage, nil, // nil: a key without a name
				(*lock.NoKeyError)(nil),
			} {
				f := newFixture()
				got, _, err := call(f, keyErr)
				if _, ok := err.(*lock.NoKeyError); !ok || !reflect.ValueOf(got).IsZero() {
					t.Errorf("%v: %+v, %v; want a NoKeyError, which Lambda reports by that name", keyErr, got, err)
				}
				if keyErr != nil && keyErr != error((*lock.NoKeyError)(nil)) && !errors.Is(err, keyErr) {
					t.Errorf("%v does not unwrap to %v", err, keyErr)
				}
				if keyErr == outage && !strings.HasSuffix(err.Error(), "because the key function failed: database is down") { //nolint:errorlint // the same error
					t.Errorf("%v blames the event", err)
				}
				f.want(t, lock.OutcomeRefused)
			}
		})
	}
}

// TestNoKeyErrorIsNotEdited shows that a key function may return one error for
// all events, also at the same time.
func TestNoKeyErrorIsNotEdited(t *testing.T) {
	t.Parallel()
	mine := &lock.NoKeyError{Field: "headers[X]", Reason: "is missing", Client: true}
	before := *mine
	var all sync.WaitGroup
	for _, err := range []error{mine, fmt.Errorf("tenant 7: %w", mine)} {
		h := middleware.EachSQSMessage(func(context.Context, events.SQSMessage) (lock.Key, error) { return lock.Key{}, err },
			func(context.Context, events.SQSMessage) error { return nil }, newFixture().options()...)
		for range 8 {
			all.Go(func() {
				_, _ = h(t.Context(), sqsBatch(message("a", ""), message("b", "")))
				_, _ = refused[events.APIGatewayProxyResponse](t, newFixture(), err)
			})
		}
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second): // an error that wraps itself has no end
		t.Fatal("the error was edited while it was in use")
	}
	if *mine != before {
		t.Errorf("the error became %+v", *mine)
	}
}

// TestStreamedBadRequest shows what the runtime reads from a streamed 400.
func TestStreamedBadRequest(t *testing.T) {
	t.Parallel()
	f := newFixture()
	rest, err := refused[*events.APIGatewayProxyStreamingResponse](t, f, errRefused)
	if err != nil || rest.StatusCode != http.StatusBadRequest || !reflect.DeepEqual(rest.Headers, problemHeader) {
		t.Fatalf("REST API: %+v, %v", rest, err)
	}
	url, err := refused[*events.LambdaFunctionURLStreamingResponse](t, f, errRefused)
	if err != nil || url.StatusCode != http.StatusBadRequest || !reflect.DeepEqual(url.Headers, problemHeader) {
		t.Fatalf("Function URL: %+v, %v", url, err)
	}
	f.want(t, lock.OutcomeRefused, lock.OutcomeRefused)
	for name, r := range map[string]io.Reader{"REST API": rest, "Function URL": url} {
		t.Run(name, func(t *testing.T) {
			b, err := io.ReadAll(r) // as the runtime does: status and headers, eight zeros, body
			head, body, ok := bytes.Cut(b, make([]byte, 8))
			if !ok || !bytes.Contains(head, []byte(`"statusCode":400`)) || string(body) != refusedBody || err != nil {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
}

// TestNotABadRequest shows which handlers and which errors of key functions do
// not get a response with status 400.
func TestNotABadRequest(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	ignore := fmt.Errorf("no request: %w", keyfuncs.ErrIgnore)
	type other struct{ StatusCode int }
	same := func(want error) func(error) bool { return func(err error) bool { return err == want } }
	for name, c := range map[string]struct {
		call    func(*fixture) (any, error)
		want    func(error) bool
		outcome lock.Outcome
	}{
		"other result":         {func(f *fixture) (any, error) { return refused[other](t, f, errRefused) }, same(errRefused), lock.OutcomeRefused},
		"any result":           {func(f *fixture) (any, error) { return refused[any](t, f, errRefused) }, same(errRefused), lock.OutcomeRefused},
		"stream":               {func(f *fixture) (any, error) { return refused[io.Reader](t, f, errRefused) }, same(errRefused), lock.OutcomeRefused},
		"not the client's":     {func(f *fixture) (any, error) { return refused[events.APIGatewayProxyResponse](t, f, boom) }, func(err error) bool { return errors.Is(err, boom) }, lock.OutcomeRefused},
		"the operator's":       {func(f *fixture) (any, error) { return refused[events.APIGatewayProxyResponse](t, f, errOperator) }, same(errOperator), lock.OutcomeRefused},
		"nothing to work on":   {func(f *fixture) (any, error) { return refused[other](t, f, ignore) }, same(nil), middleware.OutcomeIgnored},
		"a key without a name": {func(f *fixture) (any, error) { return refused[events.APIGatewayProxyResponse](t, f, nil) }, func(err error) bool { e, ok := err.(*lock.NoKeyError); return ok && e.Field == "Name" }, lock.OutcomeRefused},
		"no result": {func(f *fixture) (any, error) {
			key := func(context.Context, order) (lock.Key, error) { return lock.Key{}, errRefused }
			return nil, middleware.WithLock(key, func(order) error { t.Error("ran"); return nil }, f.options()...)(order{})
		}, same(errRefused), lock.OutcomeRefused},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			got, err := c.call(f)
			if got != nil && !reflect.ValueOf(got).IsZero() || !c.want(err) {
				t.Errorf("%+v, %v", got, err)
			}
			f.want(t, c.outcome)
		})
	}
}

// TestBadRequestIsLogged shows that the log has the cause that the client does
// not see, and an error only of what the client does not learn: anybody can
// send a bad request.
func TestBadRequestIsLogged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		call func(middleware.Option) error
		want []string
	}{
		"status 400": {func(log middleware.Option) error {
			_, err := refused[events.ALBTargetGroupResponse](t, newFixture(), errRefused, log)
			return err
		}, []string{"level=INFO", "the cause is not for clients"}},
		"the operator's": {func(log middleware.Option) error {
			_, err := refused[events.ALBTargetGroupResponse](t, newFixture(), errOperator, log)
			return err
		}, []string{"level=ERROR"}},
		"no gateway": {func(log middleware.Option) error {
			_, err := refused[any](t, newFixture(), errRefused, log)
			return err
		}, []string{"level=ERROR"}},
	} {
		t.Run(name, func(t *testing.T) {
			var log warnings
			err := c.call(middleware.Logger(slog.New(slog.NewTextHandler(&log, nil))))
			if lines := log.lines(); len(lines) != 1 || slices.ContainsFunc(c.want, func(part string) bool { return !strings.Contains(lines[0], part) }) {
				t.Errorf("%v, logged %q: want %q", err, lines, c.want)
			}
		})
	}
}

// TestBadRequestSpeaksToTheClient shows that the answers for real key functions
// name parts of the request, and nothing that only the operator knows.
func TestBadRequestSpeaksToTheClient(t *testing.T) {
	t.Parallel()
	type request = events.APIGatewayV2HTTPRequest
	header, body := keyfuncs.Func[request](keyfuncs.IdempotencyKey[events.APIGatewayV2HTTPRequest]), keyfuncs.HTTPBody[request](jmespath.Path("[order.id, tenant]"))
	own := func(context.Context, request) (lock.Key, error) {
		return lock.Key{}, &lock.NoKeyError{Reason: "is for a closed account", Client: true}
	}
	for name, c := range map[string]struct {
		key    keyfuncs.Func[request]
		header string
		body   string
		within string
	}{
		"no header":      {header, "none", "", "headers[Idempotency-Key] is missing"},
		"empty header":   {header, "", "", "headers[Idempotency-Key] is empty"},
		"long header":    {header, strings.Repeat("x", 256), "", "longer than 255 bytes"},
		"control header": {header, "a\x00b", "", "control characters"},
		"no body":        {body, "", "", "body is not JSON"},
		"no JSON":        {body, "", "order=7", "body is not JSON"},
		"no member":      {body, "", `{"order":{"id":7}}`, "missing in part"},
		"no field":       {own, "", "", "the request is for a closed account"},
	} {
		t.Run(name, func(t *testing.T) {
			e := request{Version: "2.0", RawPath: "/payments", Headers: map[string]string{"idempotency-key": c.header}, Body: c.body}
			if c.header == "none" {
				e.Headers = nil
			}
			e.RequestContext.APIID, e.RequestContext.HTTP.Method = "a1b2c3", "POST"
			h := middleware.WithLock(c.key, func(context.Context, request) (events.APIGatewayV2HTTPResponse, error) {
				t.Error("ran")
				return events.APIGatewayV2HTTPResponse{}, nil
			}, newFixture().options()...)
			r, err := h(t.Context(), e)
			if err != nil || r.StatusCode != http.StatusBadRequest || !strings.Contains(r.Body, c.within) {
				t.Errorf("%+v, %v; want status 400 and %q", r, err, c.within)
			}
			for _, ours := range []string{"keyfuncs", "middleware", "lambdalock", "lock.", "EventFrom", "APIGateway", "json:"} {
				if strings.Contains(r.Body, ours) {
					t.Errorf("the client is told of %s: %s", ours, r.Body)
				}
			}
		})
	}
}

// TestClientsDoNotWaitForCompletion shows that a client gets its answer soon if
// the event cannot be completed, and that other handlers try for longer.
func TestClientsDoNotWaitForCompletion(t *testing.T) { // F7
	for name, c := range map[string]struct {
		call func(ctx context.Context, f *fixture) error
		want time.Duration
	}{
		"HTTP": {func(ctx context.Context, f *fixture) error {
			r, err := middleware.WithLock(byOrder, func(context.Context, order) (events.APIGatewayV2HTTPResponse, error) {
				return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusCreated}, nil
			}, f.options()...)(ctx, order{ID: "1"})
			if r.StatusCode != http.StatusCreated {
				t.Errorf("status %d", r.StatusCode)
			}
			return err
		}, 5 * time.Second},
		"HTTP, as asked": {func(ctx context.Context, f *fixture) error {
			_, err := middleware.WithLock(byOrder, func(context.Context, order) (*events.ALBTargetGroupResponse, error) {
				return &events.ALBTargetGroupResponse{StatusCode: http.StatusCreated}, nil
			}, f.options(engine(func(o *lock.Options) { o.CompleteWithin = 20 * time.Second }))...)(ctx, order{ID: "1"})
			return err
		}, 20 * time.Second},
		"HTTP, only a body": {func(ctx context.Context, f *fixture) error {
			key := func(context.Context, events.APIGatewayV2HTTPRequest) (lock.Key, error) {
				return lock.Key{Name: "n", Event: "e"}, nil
			}
			_, err := middleware.WithLock(key, func(context.Context, events.APIGatewayV2HTTPRequest) (order, error) { return order{ID: "1"}, nil }, f.options()...)(ctx, events.APIGatewayV2HTTPRequest{})
			return err
		}, 5 * time.Second},
		"an event": {func(ctx context.Context, f *fixture) error {
			return middleware.WithLock(byOrder, func(context.Context, order) error { return nil }, f.options()...)(ctx, order{ID: "1"})
		}, 30*time.Second - 100*time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture()
				f.faulty.Always(fault.Release, fault.Throttle)
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				start := time.Now()
				expect.OK(t, c.call(ctx, f))
				if d := time.Since(start); d > c.want || d < c.want-100*time.Millisecond {
					t.Errorf("answered after %v, want %v", d, c.want)
				}
				f.want(t, lock.OutcomeAcquired, lock.OutcomeCompleteFailed)
			})
		})
	}
}
