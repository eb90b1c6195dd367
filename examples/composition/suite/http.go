// Package suite shows for every example what it must do when requests come
// again, and for tracers that each run has a span.
package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// Charge does the work of the HTTP examples.
type Charge = func(ctx context.Context, order string) (payment string, err error)

// Build returns the function of an example, which locks with these options.
type Build = func(charge Charge, opts ...middleware.Option) any

// response is what the client sees.
type response struct {
	status  int
	headers map[string]string
	cookies []string
	body    string
}

// HTTP checks an HTTP API that takes payments: POST /payments charges for the
// order in its body, and GET /payments lists them.
func HTTP(t *testing.T, build Build) {
	for name, check := range map[string]func(*testing.T, *api){
		"a retry after status 503 runs again":     retryRunsAgain,
		"a duplicate gets the first answer":       duplicateGetsFirstAnswer,
		"two at the same time get one status 409": secondGetsConflict,
		"another body gets status 422":            otherBodyIsRefused,
		"an empty key gets status 400":            emptyKeyIsRefused,
		"a GET needs no key":                      noKeyPasses,
		"the work has the context of the lock":    contextHasTheLock,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &api{}
			a.handler = build(a.charge, Options()...)
			check(t, a)
		})
	}
}

func retryRunsAgain(t *testing.T, a *api) {
	a.err = errors.New("the bank is closed")
	if r := a.post(t, "k1", order); r.status != http.StatusServiceUnavailable || r.replayed() {
		t.Errorf("the first try: %+v", r)
	}
	a.err = nil
	if r := a.post(t, "k1", order); r.status != http.StatusCreated || r.replayed() {
		t.Errorf("the retry: %+v", r)
	}
	a.ran(t, 2)
}

func duplicateGetsFirstAnswer(t *testing.T, a *api) {
	first := a.post(t, "k1", order)
	if first.status != http.StatusCreated || first.replayed() || len(first.cookies) != 1 || first.body == "" {
		t.Errorf("the first answer: %+v", first)
	}
	for range 2 {
		again := a.post(t, "k1", order)
		if !again.replayed() {
			t.Errorf("the duplicate is not marked: %+v", again)
		}
		delete(again.headers, replayedHeader)
		if again.status != first.status || again.body != first.body || !maps.Equal(again.headers, first.headers) || !slices.Equal(again.cookies, first.cookies) {
			t.Errorf("the duplicate got %+v\nwant %+v", again, first)
		}
	}
	a.ran(t, 1)
}

func secondGetsConflict(t *testing.T, a *api) {
	a.entered, a.leave = make(chan bool), make(chan bool)
	first := make(chan response)
	go func() { first <- a.post(t, "k1", order) }()
	<-a.entered
	r := a.post(t, "k1", order)
	if after, err := strconv.Atoi(r.headers["Retry-After"]); r.status != http.StatusConflict || err != nil || after < 1 {
		t.Errorf("the second: %+v", r)
	}
	r.problem(t)
	close(a.leave)
	if r := <-first; r.status != http.StatusCreated {
		t.Errorf("the first: %+v", r)
	}
	a.ran(t, 1)
}

func otherBodyIsRefused(t *testing.T, a *api) {
	a.post(t, "k1", order)
	r := a.post(t, "k1", `{"order":"o2"}`)
	if r.status != http.StatusUnprocessableEntity || r.replayed() {
		t.Errorf("%+v", r)
	}
	r.problem(t)
	a.ran(t, 1)
}

func emptyKeyIsRefused(t *testing.T, a *api) {
	r := a.send(t, http.MethodPost, map[string]string{"idempotency-key": ""}, order)
	if r.status != http.StatusBadRequest {
		t.Errorf("%+v", r)
	}
	r.problem(t)
	a.ran(t, 0)
}

func noKeyPasses(t *testing.T, a *api) {
	for range 2 {
		if r := a.send(t, http.MethodGet, nil, ""); r.status != http.StatusOK || r.replayed() {
			t.Errorf("%+v", r)
		}
	}
}

func contextHasTheLock(t *testing.T, a *api) {
	a.post(t, "k1", order)
	if !a.locked.Load() {
		t.Error("the context of the work has no lock: the adapter was given another one")
	}
}

const (
	order          = `{"order":"o1"}`
	replayedHeader = "Idempotent-Replayed"
)

// api is an example and what its work does.
type api struct {
	handler        any
	err            error // of the work
	runs           atomic.Int32
	locked         atomic.Bool
	entered, leave chan bool // nil: the work does not wait
}

// Options are for a lock in memory that writes no log.
func Options() []middleware.Option {
	return []middleware.Option{middleware.Store(memstore.New()), middleware.Logger(slog.New(slog.DiscardHandler))}
}

func (a *api) charge(ctx context.Context, order string) (string, error) {
	if _, ok := lock.FromContext(ctx); ok {
		a.locked.Store(true)
	}
	if a.entered != nil {
		a.entered <- true
		<-a.leave
	}
	if order != "o1" {
		return "", errors.New("the body was lost")
	}
	return "payment-" + strconv.Itoa(int(a.runs.Add(1))), a.err
}

func (a *api) ran(t *testing.T, want int32) {
	t.Helper()
	if got := a.runs.Load(); got != want {
		t.Errorf("the work was done %d times, want %d", got, want)
	}
}

func (a *api) post(t *testing.T, key, body string) response {
	t.Helper()
	return a.send(t, http.MethodPost, map[string]string{"idempotency-key": key}, body)
}

// send delivers a request as API Gateway (payload format 2.0) and Function URLs
// do.
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
func (a *api) send(t *testing.T, method string, headers map[string]string, body string) response {
	t.Helper()
	h := map[string]string{"content-type": "application/json", "authorization": "Bearer jane", "host": "abc123.lambda-url.eu-west-1.on.aws"}
	maps.Copy(h, headers)
	payload, err := json.Marshal(map[string]any{
		"version": "2.0", "routeKey": "$default", "rawPath": "/payments", "rawQueryString": "", "headers": h,
		"requestContext": map[string]any{
			"accountId": "123456789012", "apiId": "abc123", "domainName": "abc123.lambda-url.eu-west-1.on.aws", "domainPrefix": "abc123",
			"http":      map[string]any{"method": method, "path": "/payments", "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "test"},
			"requestId": "JKJaXmPLvHcESHA=", "routeKey": "$default", "stage": "$default", "time": "12/Mar/2026:19:03:58 +0000", "timeEpoch": 1773342238000,
		},
		"body": body, "isBase64Encoded": false,
	})
	if err != nil {
		t.Error(err)
	}
	out, err := Invoke(t.Context(), a.handler, payload)
	if err != nil {
		t.Error(err)
	}
	return parse(t, out)
}

// Invoke calls a function as Lambda does. Every call has a handler of its own,
// because the bytes that one returns are those of its next answer.
func Invoke(ctx context.Context, handler any, payload []byte) ([]byte, error) {
	ctx = lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{
		AwsRequestID: "b5a3d6f0-0000-4000-8000-000000000000", InvokedFunctionArn: "arn:aws:lambda:eu-central-1:123456789012:function:orders",
	})
	return lambda.NewHandler(handler).Invoke(ctx, payload)
}

// parse returns the response that a function answered with. That of a stream is
// a line of JSON, eight zeros and the body.
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-response-streaming.html
func parse(t *testing.T, out []byte) response {
	t.Helper()
	head, body, streamed := bytes.Cut(out, make([]byte, 8))
	var r events.APIGatewayV2HTTPResponse
	if err := json.Unmarshal(head, &r); err != nil {
		t.Errorf("%s: %v", out, err)
	}
	if streamed {
		r.Body = string(body)
	}
	return response{r.StatusCode, r.Headers, r.Cookies, r.Body}
}

func (r response) replayed() bool { return r.headers[replayedHeader] == "true" }

// problem checks that a response is a problem document (RFC 9457).
func (r response) problem(t *testing.T) {
	t.Helper()
	var p struct {
		Status int
		Title  string
	}
	d := json.NewDecoder(bytes.NewReader([]byte(r.body)))
	if err := d.Decode(&p); err != nil || p.Status != r.status || p.Title == "" || r.headers["Content-Type"] != "application/problem+json" {
		t.Errorf("not a problem document: %+v: %v", r, err)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Errorf("more than a document: %q", r.body)
	}
}
