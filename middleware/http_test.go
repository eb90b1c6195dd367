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
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

var (
	errRefused = &lock.KeyError{Field: "headers[Idempotency-Key]", Reason: `is "missing"`, Err: errors.New("the cause is not for clients")}
	jsonHeader = map[string]string{"Content-Type": "application/json"}
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

func TestBadRequest(t *testing.T) { // F26
	t.Parallel()
	rest := events.APIGatewayProxyResponse{StatusCode: http.StatusBadRequest, Headers: jsonHeader, Body: refusedBody}
	v2 := events.APIGatewayV2HTTPResponse{StatusCode: http.StatusBadRequest, Headers: jsonHeader, Body: refusedBody}
	url := events.LambdaFunctionURLResponse{StatusCode: http.StatusBadRequest, Headers: jsonHeader, Body: refusedBody}
	alb := events.ALBTargetGroupResponse{
		StatusCode: http.StatusBadRequest, StatusDescription: "400 Bad Request", Body: refusedBody,
		Headers: jsonHeader, MultiValueHeaders: map[string][]string{"Content-Type": {"application/json"}},
	}
	for name, c := range map[string]struct {
		call func(*quiet) (any, error)
		want any
	}{
		"REST API":      {func(q *quiet) (any, error) { return refused[events.APIGatewayProxyResponse](t, q, errRefused) }, rest},
		"*REST API":     {func(q *quiet) (any, error) { return refused[*events.APIGatewayProxyResponse](t, q, errRefused) }, &rest},
		"HTTP API":      {func(q *quiet) (any, error) { return refused[events.APIGatewayV2HTTPResponse](t, q, errRefused) }, v2},
		"*HTTP API":     {func(q *quiet) (any, error) { return refused[*events.APIGatewayV2HTTPResponse](t, q, errRefused) }, &v2},
		"Function URL":  {func(q *quiet) (any, error) { return refused[events.LambdaFunctionURLResponse](t, q, errRefused) }, url},
		"*Function URL": {func(q *quiet) (any, error) { return refused[*events.LambdaFunctionURLResponse](t, q, errRefused) }, &url},
		"ALB":           {func(q *quiet) (any, error) { return refused[events.ALBTargetGroupResponse](t, q, errRefused) }, alb},
		"*ALB":          {func(q *quiet) (any, error) { return refused[*events.ALBTargetGroupResponse](t, q, errRefused) }, &alb},
	} {
		q := newQuiet()
		if got, err := c.call(q); !reflect.DeepEqual(got, c.want) || err != nil {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
		q.want(t, lock.Refused)
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
	q.want(t, lock.Refused, lock.Refused)
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
		kind lock.Kind
	}{
		"other result":         {func(q *quiet) (any, error) { return refused[other](t, q, errRefused) }, same, lock.Refused},
		"any result":           {func(q *quiet) (any, error) { return refused[any](t, q, errRefused) }, same, lock.Refused},
		"stream":               {func(q *quiet) (any, error) { return refused[io.Reader](t, q, errRefused) }, same, lock.Refused},
		"not the client's":     {func(q *quiet) (any, error) { return refused[events.APIGatewayProxyResponse](t, q, boom) }, func(err error) bool { return errors.Is(err, boom) }, lock.Refused},
		"nothing to work on":   {func(q *quiet) (any, error) { return refused[events.APIGatewayProxyResponse](t, q, ignore) }, func(err error) bool { return err == nil }, lock.Ignored},
		"a key without a name": {func(q *quiet) (any, error) { return refused[events.APIGatewayProxyResponse](t, q, nil) }, func(err error) bool { e, ok := err.(*lock.KeyError); return ok && e.Field == "Name" }, lock.Refused},
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
