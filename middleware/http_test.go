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
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/jmespath"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/middleware"
)

var (
	errRefused  = &lock.KeyError{Field: "headers[Idempotency-Key]", Reason: `is "missing"`, Err: errors.New("the cause is not for clients"), Client: true}
	errOperator = &lock.KeyError{Field: "version", Reason: "is not 2.0: use keyfuncs.IdempotencyKey"}
	jsonHeader  = map[string]string{"Content-Type": "application/json"}
)

const refusedBody = `{"message":"headers[Idempotency-Key] is \"missing\""}`

// refused runs a handler of such a result for an event whose key function fails.
func refused[R any](t *testing.T, q *quiet, keyErr error, more ...middleware.Option) (R, error) {
	t.Helper()
	key := func(context.Context, order) (lock.Key, error) { return lock.Key{}, keyErr }
	return middleware.WithLock(key, func(context.Context, order) (R, error) {
		t.Error("ran")
		return *new(R), nil
	}, q.with(more...)...)(t.Context(), order{ID: "1"})
}

// httpResults are the results that are HTTP responses: what a handler of that result
// answers when its key function fails with err, and what a client should see then.
func httpResults(t *testing.T) map[string]func(q *quiet, err error) (got, want any, _ error) {
	rest := events.APIGatewayProxyResponse{StatusCode: http.StatusBadRequest, Headers: jsonHeader, Body: refusedBody}
	v2 := events.APIGatewayV2HTTPResponse{StatusCode: http.StatusBadRequest, Headers: jsonHeader, Body: refusedBody}
	url := events.LambdaFunctionURLResponse{StatusCode: http.StatusBadRequest, Headers: jsonHeader, Body: refusedBody}
	alb := events.ALBTargetGroupResponse{
		StatusCode: http.StatusBadRequest, StatusDescription: "400 Bad Request", Body: refusedBody,
		Headers: jsonHeader, MultiValueHeaders: map[string][]string{"Content-Type": {"application/json"}},
	}
	return map[string]func(*quiet, error) (any, any, error){
		"REST API":      answerOf(t, rest),
		"*REST API":     answerOf(t, &rest),
		"HTTP API":      answerOf(t, v2),
		"*HTTP API":     answerOf(t, &v2),
		"Function URL":  answerOf(t, url),
		"*Function URL": answerOf(t, &url),
		"ALB":           answerOf(t, alb),
		"*ALB":          answerOf(t, &alb),
		"streamed REST API": answerOf(t, &events.APIGatewayProxyStreamingResponse{
			StatusCode: http.StatusBadRequest, Headers: jsonHeader, Body: bytes.NewReader([]byte(refusedBody)),
		}),
		"streamed Function URL": answerOf(t, &events.LambdaFunctionURLStreamingResponse{
			StatusCode: http.StatusBadRequest, Headers: jsonHeader, Body: bytes.NewReader([]byte(refusedBody)),
		}),
	}
}

func answerOf[R any](t *testing.T, want R) func(*quiet, error) (any, any, error) {
	return func(q *quiet, keyErr error) (any, any, error) {
		got, err := refused[R](t, q, keyErr)
		return got, want, err
	}
}

// TestBadRequest: what the client can mend is answered with status 400, also where the
// key function has put words around it.
func TestBadRequest(t *testing.T) { // F26
	t.Parallel()
	for name, call := range httpResults(t) {
		for _, keyErr := range []error{errRefused, fmt.Errorf("tenant 7: %w", errRefused), errors.Join(errors.New("first"), errRefused)} {
			q := newQuiet()
			if got, want, err := call(q, keyErr); !reflect.DeepEqual(got, want) || err != nil {
				t.Errorf("%s, %v: %+v, %v; want %+v", name, keyErr, got, err, want)
			}
			q.want(t, lock.OutcomeRefused)
		}
	}
}

// TestOperatorsMistakeIsNoBadRequest: an event of another source, or the wrong key
// function, must raise alarms, and tell no client the names of functions.
func TestOperatorsMistakeIsNoBadRequest(t *testing.T) {
	t.Parallel()
	_, otherSource := keyfuncs.IdempotencyKey[events.APIGatewayV2HTTPRequest](t.Context(), events.APIGatewayV2HTTPRequest{})
	_, noGateway := keyfuncs.HTTPBody[events.APIGatewayV2HTTPRequest](jmespath.Key("order"))(t.Context(), events.APIGatewayV2HTTPRequest{})
	for name, call := range httpResults(t) {
		for _, keyErr := range []error{
			errOperator, fmt.Errorf("tenant 7: %w", errOperator), otherSource, noGateway, errors.New("boom"), nil, // nil: a key without a name
			(*lock.KeyError)(nil),
		} {
			q := newQuiet()
			got, _, err := call(q, keyErr)
			if _, ok := err.(*lock.KeyError); !ok || !reflect.ValueOf(got).IsZero() {
				t.Errorf("%s, %v: %+v, %v; want a KeyError, which Lambda reports by that name", name, keyErr, got, err)
			}
			if keyErr != nil && keyErr != error((*lock.KeyError)(nil)) && !errors.Is(err, keyErr) {
				t.Errorf("%s: %v does not answer to %v", name, err, keyErr)
			}
			q.want(t, lock.OutcomeRefused)
		}
	}
}

// TestKeyErrorIsNotEdited: key functions may return one value for all events, at the
// same time.
func TestKeyErrorIsNotEdited(t *testing.T) {
	t.Parallel()
	mine := &lock.KeyError{Field: "headers[X]", Reason: "is missing", Client: true}
	before := *mine
	var all sync.WaitGroup
	for _, err := range []error{mine, fmt.Errorf("tenant 7: %w", mine)} {
		h := middleware.EachSQSMessage(func(context.Context, events.SQSMessage) (lock.Key, error) { return lock.Key{}, err },
			func(context.Context, events.SQSMessage) error { return nil }, newQuiet().with()...)
		for range 8 {
			all.Go(func() {
				_, _ = h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{message("a", ""), message("b", "")}})
				_, _ = refused[events.APIGatewayProxyResponse](t, newQuiet(), err)
			})
		}
	}
	all.Wait()
	if *mine != before {
		t.Errorf("the error became %+v", *mine)
	}
}

func TestStreamedBadRequest(t *testing.T) {
	t.Parallel()
	q := newQuiet()
	rest, err := refused[*events.APIGatewayProxyStreamingResponse](t, q, errRefused)
	if err != nil || rest.StatusCode != http.StatusBadRequest || !reflect.DeepEqual(rest.Headers, jsonHeader) {
		t.Fatalf("REST API: %+v, %v", rest, err)
	}
	url, err := refused[*events.LambdaFunctionURLStreamingResponse](t, q, errRefused)
	if err != nil || url.StatusCode != http.StatusBadRequest || !reflect.DeepEqual(url.Headers, jsonHeader) {
		t.Fatalf("Function URL: %+v, %v", url, err)
	}
	q.want(t, lock.OutcomeRefused, lock.OutcomeRefused)
	for name, r := range map[string]io.Reader{"REST API": rest, "Function URL": url} {
		b, err := io.ReadAll(r) // as the runtime does: status and headers, eight zeros, body
		head, body, ok := bytes.Cut(b, make([]byte, 8))
		if !ok || !bytes.Contains(head, []byte(`"statusCode":400`)) || string(body) != refusedBody || err != nil {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}

func TestNoBadRequest(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	same := func(err error) bool { return err == error(errRefused) }
	ignore := fmt.Errorf("no request: %w", keyfuncs.ErrIgnore)
	type other struct{ StatusCode int }
	for name, c := range map[string]struct {
		call func(*quiet) (any, error)
		want func(error) bool
		kind lock.Outcome
	}{
		"other result":         {func(q *quiet) (any, error) { return refused[other](t, q, errRefused) }, same, lock.OutcomeRefused},
		"any result":           {func(q *quiet) (any, error) { return refused[any](t, q, errRefused) }, same, lock.OutcomeRefused},
		"stream":               {func(q *quiet) (any, error) { return refused[io.Reader](t, q, errRefused) }, same, lock.OutcomeRefused},
		"not the client's":     {func(q *quiet) (any, error) { return refused[events.APIGatewayProxyResponse](t, q, boom) }, func(err error) bool { return errors.Is(err, boom) }, lock.OutcomeRefused},
		"the operator's":       {func(q *quiet) (any, error) { return refused[events.APIGatewayProxyResponse](t, q, errOperator) }, func(err error) bool { return err == error(errOperator) }, lock.OutcomeRefused},
		"nothing to work on":   {func(q *quiet) (any, error) { return refused[events.APIGatewayProxyResponse](t, q, ignore) }, func(err error) bool { return err == nil }, middleware.OutcomeIgnored},
		"a key without a name": {func(q *quiet) (any, error) { return refused[events.APIGatewayProxyResponse](t, q, nil) }, func(err error) bool { e, ok := err.(*lock.KeyError); return ok && e.Field == "Name" }, lock.OutcomeRefused},
	} {
		q := newQuiet()
		got, err := c.call(q)
		if got != nil && !reflect.ValueOf(got).IsZero() || !c.want(err) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		q.want(t, c.kind)
	}
	q := newQuiet()
	key := func(context.Context, order) (lock.Key, error) { return lock.Key{}, errRefused }
	noResult := middleware.WithLock(key, func(order) error { t.Error("ran"); return nil }, q.with()...)
	if err := noResult(order{}); err != error(errRefused) {
		t.Errorf("a handler without a result: %v", err)
	}
}

func TestBadRequestIsLogged(t *testing.T) {
	t.Parallel()
	q := newQuiet()
	var log bytes.Buffer
	_, err := refused[events.ALBTargetGroupResponse](t, q, errRefused, middleware.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	if !strings.Contains(log.String(), "the cause is not for clients") || err != nil {
		t.Errorf("%v, logged %q: want the cause", err, log.String())
	}
}

// TestBadRequestSpeaksToTheClient: what real key functions say of a request names parts of
// the request, and neither functions of this module nor what its operator should do.
func TestBadRequestSpeaksToTheClient(t *testing.T) {
	t.Parallel()
	type request = events.APIGatewayV2HTTPRequest
	header, body := keyfuncs.Func[request](keyfuncs.IdempotencyKey[events.APIGatewayV2HTTPRequest]), keyfuncs.HTTPBody[request](jmespath.Key("[order.id, tenant]"))
	for name, c := range map[string]struct {
		key    keyfuncs.Func[request]
		header string
		body   string
		within string
	}{
		"no header":      {header, "", "", "headers[Idempotency-Key] is missing"},
		"long header":    {header, strings.Repeat("x", 256), "", "longer than 255 bytes"},
		"control header": {header, "a\x00b", "", "control characters"},
		"no body":        {body, "", "", "body is not JSON"},
		"no JSON":        {body, "", "order=7", "body is not JSON"},
		"no member":      {body, "", `{"order":{"id":7}}`, "missing in part"},
	} {
		e := request{Version: "2.0", RawPath: "/payments", Headers: map[string]string{"idempotency-key": c.header}, Body: c.body}
		e.RequestContext.APIID, e.RequestContext.HTTP.Method = "a1b2c3", "POST"
		h := middleware.WithLock(c.key, func(context.Context, request) (events.APIGatewayV2HTTPResponse, error) {
			t.Errorf("%s: ran", name)
			return events.APIGatewayV2HTTPResponse{}, nil
		}, newQuiet().with()...)
		r, err := h(t.Context(), e)
		if err != nil || r.StatusCode != http.StatusBadRequest || !strings.Contains(r.Body, c.within) {
			t.Errorf("%s: %+v, %v; want status 400 and %q", name, r, err, c.within)
		}
		for _, ours := range []string{"keyfuncs", "middleware", "lambdalock", "lock.", "EventFrom", "APIGateway", "json:"} {
			if strings.Contains(r.Body, ours) {
				t.Errorf("%s: the client is told of %s: %s", name, ours, r.Body)
			}
		}
	}
}

// TestClientsDoNotWaitForTheRecord: where the store takes no record, a client gets its
// answer soon, and nobody else has to hurry.
func TestClientsDoNotWaitForTheRecord(t *testing.T) { // F7
	for name, c := range map[string]struct {
		call func(ctx context.Context, q *quiet) error
		want time.Duration
	}{
		"HTTP": {func(ctx context.Context, q *quiet) error {
			r, err := middleware.WithLock(byOrder, func(context.Context, order) (events.APIGatewayV2HTTPResponse, error) {
				return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusCreated}, nil
			}, q.with()...)(ctx, order{ID: "1"})
			if r.StatusCode != http.StatusCreated {
				t.Errorf("status %d", r.StatusCode)
			}
			return err
		}, middleware.DefaultAnswerWithin},
		"HTTP, as asked": {func(ctx context.Context, q *quiet) error {
			_, err := middleware.WithLock(byOrder, func(context.Context, order) (*events.ALBTargetGroupResponse, error) {
				return &events.ALBTargetGroupResponse{StatusCode: http.StatusCreated}, nil
			}, q.with(middleware.CompleteWithin(20*time.Second))...)(ctx, order{ID: "1"})
			return err
		}, 20 * time.Second},
		"an event": {func(ctx context.Context, q *quiet) error {
			return middleware.WithLock(byOrder, func(context.Context, order) error { return nil }, q.with()...)(ctx, order{ID: "1"})
		}, 30*time.Second - 100*time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQuiet()
				q.store.Always(locktest.Release, locktest.Throttle)
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				start := time.Now()
				if err := c.call(ctx, q); err != nil {
					t.Error(err)
				}
				if d := time.Since(start); d > c.want || d < c.want-100*time.Millisecond {
					t.Errorf("answered after %v, want %v", d, c.want)
				}
				q.want(t, lock.OutcomeAcquired, lock.OutcomeCompleteFailed)
			})
		})
	}
}
