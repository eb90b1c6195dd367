package middleware_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/middleware"
)

// reply is a response as the client gets it from the gateway.
type reply struct {
	status  int
	headers map[string]string // with names in lower case
	body    string
}

func (r reply) mark() string { return r.headers["idempotent-replayed"] }

// work is what the handler of a route does.
type work func() (reply, error)

// route is a function behind a gateway, which takes events as JSON.
type route func(t *testing.T, f *fixture, key keyOption, do work, opts ...middleware.Option) func(doc []byte) (reply, error)

// keyOption says whether the key is optional.
type keyOption bool

const optional, required = keyOption(true), keyOption(false)

func keyFor[E awsevents.HTTPRequest](o keyOption) keyfuncs.Func[E] {
	if o == optional {
		return keyfuncs.Optional(keyfuncs.IdempotencyKey[E])
	}
	return keyfuncs.IdempotencyKey[E]
}

// rawKeyFor is a key function that does not show by its type that it is for an
// HTTP request.
func rawKeyFor[E awsevents.HTTPRequest](o keyOption) keyfuncs.Func[json.RawMessage] {
	return func(ctx context.Context, doc json.RawMessage) (lock.Key, error) {
		var e E
		if err := json.Unmarshal(doc, &e); err != nil {
			return lock.Key{}, err
		}
		return keyFor[E](o)(ctx, e)
	}
}

// typed is the route of a function that takes an E and returns an R.
func typed[E awsevents.HTTPRequest, R any](build func(reply) R) route {
	return func(t *testing.T, f *fixture, o keyOption, do work, opts ...middleware.Option) func([]byte) (reply, error) {
		h := middleware.WithLock(keyFor[E](o), func(context.Context, E) (R, error) {
			r, err := do()
			if err != nil {
				return *new(R), err
			}
			return build(r), nil
		}, f.options(opts...)...)
		return func(doc []byte) (reply, error) {
			var e E
			if err := json.Unmarshal(doc, &e); err != nil {
				t.Fatal(err)
			}
			out, err := h(t.Context(), e)
			return sent(t, out, err)
		}
	}
}

// untyped is the route of a function that takes raw JSON and returns anything.
func untyped[E awsevents.HTTPRequest, R any](build func(reply) R) route {
	return func(t *testing.T, f *fixture, o keyOption, do work, opts ...middleware.Option) func([]byte) (reply, error) {
		h := middleware.WithLock(rawKeyFor[E](o), func(context.Context, json.RawMessage) (any, error) {
			r, err := do()
			return build(r), err
		}, f.options(opts...)...)
		return func(doc []byte) (reply, error) {
			out, err := h(t.Context(), doc)
			return sent(t, out, err)
		}
	}
}

// rawMessage is the route of a function that returns raw JSON.
func rawMessage[E awsevents.HTTPRequest](build func(reply) any) route {
	return func(t *testing.T, f *fixture, o keyOption, do work, opts ...middleware.Option) func([]byte) (reply, error) {
		h := middleware.WithLock(rawKeyFor[E](o), func(context.Context, json.RawMessage) (json.RawMessage, error) {
			r, err := do()
			return toJSON(t, build(r)), err
		}, f.options(opts...)...)
		return func(doc []byte) (reply, error) {
			out, err := h(t.Context(), doc)
			return sent(t, out, err)
		}
	}
}

// decodedMap is the route of a function that takes and returns anything.
func decodedMap[E awsevents.HTTPRequest](build func(reply) any) route {
	return func(t *testing.T, f *fixture, o keyOption, do work, opts ...middleware.Option) func([]byte) (reply, error) {
		key := func(ctx context.Context, e any) (lock.Key, error) { return rawKeyFor[E](o)(ctx, toJSON(t, e)) }
		h := middleware.WithLock(key, func(context.Context, any) (any, error) {
			r, err := do()
			return build(r), err
		}, f.options(opts...)...)
		return func(doc []byte) (reply, error) {
			var e any
			if err := json.Unmarshal(doc, &e); err != nil {
				t.Fatal(err)
			}
			out, err := h(t.Context(), e)
			return sent(t, out, err)
		}
	}
}

// rawRoute is the route of a lambda.Handler with the key function of the event,
// or with one that takes raw JSON.
func rawRoute[E awsevents.HTTPRequest](build func(reply) any, typedKey bool) route {
	return func(t *testing.T, f *fixture, o keyOption, do work, opts ...middleware.Option) func([]byte) (reply, error) {
		handler := lambda.Handler(rawFunc(func([]byte) ([]byte, error) {
			r, err := do()
			return toJSON(t, build(r)), err
		}))
		h := middleware.WithLock(rawKeyFor[E](o), handler, f.options(opts...)...)
		if typedKey {
			h = middleware.WithLock(keyFor[E](o), handler, f.options(opts...)...)
		}
		return func(doc []byte) (reply, error) {
			out, err := h.Invoke(t.Context(), doc)
			return sent(t, json.RawMessage(out), err)
		}
	}
}

func toJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	return b
}

// sent returns what the client gets for what a function returned.
func sent(t *testing.T, out any, err error) (reply, error) {
	t.Helper()
	if err != nil {
		return reply{}, err
	}
	var doc, streamed []byte
	reader, isStream := out.(io.ReadCloser)
	if isStream {
		all, err := io.ReadAll(reader) // as the runtime does
		if cerr := reader.Close(); err != nil || cerr != nil {
			return reply{}, errors.Join(err, cerr)
		}
		var ok bool
		if doc, streamed, ok = bytes.Cut(all, make([]byte, 8)); !ok {
			t.Errorf("a stream without a head: %q", all)
		}
	} else {
		doc = toJSON(t, out)
	}
	var r struct {
		StatusCode        int
		Headers           map[string]string
		MultiValueHeaders map[string][]string
		Body              string
		IsBase64Encoded   bool
	}
	if err := json.Unmarshal(doc, &r); err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	got := reply{status: r.StatusCode, headers: map[string]string{}, body: r.Body}
	if isStream {
		got.body = string(streamed)
	} else if r.IsBase64Encoded {
		b, err := base64.StdEncoding.DecodeString(r.Body)
		if err != nil {
			t.Error(err)
		}
		got.body = string(b)
	}
	for name, values := range r.MultiValueHeaders {
		got.headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	for name, value := range r.Headers {
		if other, ok := got.headers[strings.ToLower(name)]; ok && other != value {
			t.Errorf("header %s is %q and %q", name, value, other)
		}
		got.headers[strings.ToLower(name)] = value
	}
	return got, nil
}

// Builders of each gateway's responses.
func restOf(r reply) events.APIGatewayProxyResponse {
	return events.APIGatewayProxyResponse{StatusCode: r.status, Headers: r.headers, Body: r.body}
}

func v2Of(r reply) events.APIGatewayV2HTTPResponse {
	return events.APIGatewayV2HTTPResponse{StatusCode: r.status, Headers: r.headers, Body: base64.StdEncoding.EncodeToString([]byte(r.body)), IsBase64Encoded: true, Cookies: []string{"a=b"}}
}

func urlOf(r reply) events.LambdaFunctionURLResponse {
	return events.LambdaFunctionURLResponse{StatusCode: r.status, Headers: r.headers, Body: r.body}
}

func albOf(r reply) events.ALBTargetGroupResponse {
	return events.ALBTargetGroupResponse{StatusCode: r.status, StatusDescription: "fine", Headers: r.headers, Body: r.body}
}

func multiOf(r reply) events.ALBTargetGroupResponse {
	all := map[string][]string{}
	for name, value := range r.headers {
		all[name] = []string{value}
	}
	return events.ALBTargetGroupResponse{StatusCode: r.status, MultiValueHeaders: all, Body: r.body}
}

func urlStreamOf(r reply) *events.LambdaFunctionURLStreamingResponse {
	return &events.LambdaFunctionURLStreamingResponse{StatusCode: r.status, Headers: r.headers, Cookies: []string{"a=b"}, Body: strings.NewReader(r.body)}
}

func apiStreamOf(r reply) *events.APIGatewayProxyStreamingResponse {
	all := map[string][]string{}
	for name, value := range r.headers {
		all[name] = []string{value}
	}
	return &events.APIGatewayProxyStreamingResponse{StatusCode: r.status, MultiValueHeaders: all, Body: io.NopCloser(strings.NewReader(r.body))}
}

func pointerTo[R any](build func(reply) R) func(reply) *R {
	return func(r reply) *R { v := build(r); return &v }
}

func asAny[R any](build func(reply) R) func(reply) any {
	return func(r reply) any { return build(r) }
}

func asReader[R io.Reader](build func(reply) R) func(reply) io.Reader {
	return func(r reply) io.Reader { return build(r) }
}

// ownResponse is a response type of the user's.
type ownResponse struct {
	Code    int               `json:"statusCode"`
	Headers map[string]string `json:"headers"`
	Text    string            `json:"body"`
}

func ownOf(r reply) ownResponse { return ownResponse{r.status, r.headers, r.body} }

type (
	restEvent = events.APIGatewayProxyRequest
	v2Event   = events.APIGatewayV2HTTPRequest
	wsEvent   = events.APIGatewayWebsocketProxyRequest
	urlEvent  = events.LambdaFunctionURLRequest
	albEvent  = events.ALBTargetGroupRequest
)

// routes are all gateways with all ways to answer them, by the name of the
// event that they get.
var routes = map[string]map[string]route{
	"apigateway-rest": {
		"value": typed[restEvent](restOf), "pointer": typed[restEvent](pointerTo(restOf)), "stream": typed[restEvent](apiStreamOf),
		"stream as reader": typed[restEvent](asReader(apiStreamOf)), "any": typed[restEvent](asAny(restOf)), "any of a stream": untyped[restEvent](apiStreamOf),
		"raw": rawRoute[restEvent](asAny(restOf), true), "raw by payload": rawRoute[restEvent](asAny(restOf), false), "any by payload": untyped[restEvent](restOf),
		"RawMessage": rawMessage[restEvent](asAny(restOf)), "own type": typed[restEvent](ownOf), "any of any": decodedMap[restEvent](asAny(restOf)),
	},
	"apigateway-http": {
		"value": typed[v2Event](v2Of), "pointer": typed[v2Event](pointerTo(v2Of)), "any": typed[v2Event](asAny(v2Of)), "any by payload": untyped[v2Event](v2Of),
		"raw": rawRoute[v2Event](asAny(v2Of), true), "raw by payload": rawRoute[v2Event](asAny(v2Of), false), "RawMessage": rawMessage[v2Event](asAny(v2Of)),
		"response of format 1.0": typed[v2Event](restOf), "own type": typed[v2Event](pointerTo(ownOf)), "any of any": decodedMap[v2Event](asAny(v2Of)),
	},
	"apigateway-websocket-connect": {"value": typed[wsEvent](restOf), "raw by payload": rawRoute[wsEvent](asAny(restOf), false)},
	"functionurl": {
		"value": typed[urlEvent](urlOf), "pointer": typed[urlEvent](pointerTo(urlOf)), "stream": typed[urlEvent](urlStreamOf),
		"stream as reader": typed[urlEvent](asReader(urlStreamOf)), "any": typed[urlEvent](asAny(urlOf)), "raw": rawRoute[urlEvent](asAny(urlOf), true),
		"raw by payload": rawRoute[urlEvent](asAny(urlOf), false), "any by payload": untyped[urlEvent](urlOf), "any of a stream": untyped[urlEvent](urlStreamOf),
	},
	"alb": {
		"value": typed[albEvent](albOf), "pointer": typed[albEvent](pointerTo(albOf)), "any": typed[albEvent](asAny(albOf)),
		"raw": rawRoute[albEvent](asAny(albOf), true), "raw by payload": rawRoute[albEvent](asAny(albOf), false), "any by payload": untyped[albEvent](albOf),
	},
	"alb-multivalue": {
		"value": typed[albEvent](multiOf), "pointer": typed[albEvent](pointerTo(multiOf)), "any by payload": untyped[albEvent](multiOf),
		"raw by payload": rawRoute[albEvent](asAny(multiOf), false),
	},
}

// onEveryRoute runs test on every route, with the JSON of a request for it.
func onEveryRoute(t *testing.T, test func(t *testing.T, r route, doc []byte)) {
	t.Helper()
	for file, ways := range routes {
		doc, err := os.ReadFile("../keyfuncs/testdata/" + file + ".json")
		if err != nil {
			t.Fatal(err)
		}
		for way, r := range ways {
			t.Run(file+" "+way, func(t *testing.T) {
				t.Parallel()
				test(t, r, doc)
			})
		}
	}
}

// edited returns a request with one change.
func edited(t *testing.T, doc []byte, change func(map[string]any)) []byte {
	t.Helper()
	var e map[string]any
	if err := json.Unmarshal(doc, &e); err != nil {
		t.Fatal(err)
	}
	change(e)
	return toJSON(t, e)
}

func withoutHeader(e map[string]any) {
	for _, field := range []string{"headers", "multiValueHeaders"} {
		if headers, ok := e[field].(map[string]any); ok {
			delete(headers, "idempotency-key")
			delete(headers, "Idempotency-Key")
		}
	}
}

func withOtherBody(e map[string]any) { e["body"], e["isBase64Encoded"] = `{"order": 8}`, false }

var created = reply{status: http.StatusCreated, headers: map[string]string{"content-type": "text/plain", "location": "/orders/<7>"}, body: "receipt <7> & \x00\xff\u2028"}

// TestHTTPReplay shows that a repeated request gets the first response again,
// byte for byte and marked, and that the handler does not run.
func TestHTTPReplay(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 201, 204, 302, 404, 422, 499} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			onEveryRoute(t, func(t *testing.T, r route, doc []byte) {
				f, runs := newFixture(), 0
				want := created
				want.status = status
				call := r(t, f, required, func() (reply, error) { runs++; return want, nil })
				first, err := call(doc)
				if err != nil || first.status != status || first.mark() != "" {
					t.Fatalf("first: %+v, %v", first, err)
				}
				for range 2 {
					again, err := call(doc)
					if err != nil || again.status != status || again.body != first.body || again.mark() != "true" ||
						again.headers["content-type"] != first.headers["content-type"] || again.headers["location"] != first.headers["location"] {
						t.Errorf("again: %+v, %v; first %+v", again, err, first)
					}
				}
				if runs != 1 {
					t.Errorf("%d runs", runs)
				}
				f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeAlreadyCompleted, lock.OutcomeAlreadyCompleted)
			})
		})
	}
}

// TestHTTPFailureRunsAgain shows that the retry of a request runs if the first
// one failed, and that only a success is then replayed.
func TestHTTPFailureRunsAgain(t *testing.T) { // F36
	t.Parallel()
	boom := errors.New("boom")
	status := func(code int) work { return func() (reply, error) { return reply{status: code, body: "later"}, nil } }
	for name, failing := range map[string]work{
		"500": status(500), "503": status(503), "599": status(599), "429": status(429), "99": status(99), "1000": status(1000),
		"error": func() (reply, error) { return created, boom },
		"panic": func() (reply, error) { panic("boom") },
	} {
		t.Run(name, func(t *testing.T) {
			onEveryRoute(t, func(t *testing.T, r route, doc []byte) {
				f, runs := newFixture(), 0
				call := r(t, f, required, func() (reply, error) {
					if runs++; runs <= 2 {
						return failing()
					}
					return created, nil
				})
				for range 2 {
					func() {
						defer func() { _ = recover() }()
						if got, err := call(doc); err == nil && (got.body != "later" || got.mark() != "") || err != nil && err != boom {
							t.Errorf("%+v, %v", got, err)
						}
					}()
				}
				for range 2 {
					if got, err := call(doc); err != nil || got.status != created.status {
						t.Errorf("%+v, %v", got, err)
					}
				}
				if runs != 3 {
					t.Errorf("%d runs, want the two that failed and one", runs)
				}
			})
		})
	}
}

// TestHTTPInProgress shows that the second of two simultaneous requests gets
// status 409 and runs when it comes again, if the first one failed.
func TestHTTPInProgress(t *testing.T) {
	t.Parallel()
	onEveryRoute(t, func(t *testing.T, r route, doc []byte) {
		f := newFixture()
		var call func([]byte) (reply, error)
		call = r(t, f, required, func() (reply, error) {
			got, err := call(doc)
			wantProblem(t, got, err, http.StatusConflict, "already in progress")
			if got.headers["retry-after"] != "1" {
				t.Errorf("Retry-After: %q", got.headers["retry-after"])
			}
			return created, nil
		})
		if got, err := call(doc); err != nil || got.status != created.status {
			t.Errorf("%+v, %v", got, err)
		}
		f.want(t, lock.OutcomeAcquired, lock.OutcomeHeld, lock.OutcomeReleased)
	})
}

// wantProblem checks that the client gets a problem document.
func wantProblem(t *testing.T, got reply, err error, status int, detail string) {
	t.Helper()
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	if jsonErr := json.Unmarshal([]byte(got.body), &p); err != nil || jsonErr != nil || got.status != status || got.headers["content-type"] != "application/problem+json" ||
		p.Status != status || p.Type != "about:blank" || p.Title != http.StatusText(status) || !strings.Contains(p.Detail, detail) || got.mark() != "" {
		t.Errorf("%+v, %v; want a problem document with status %d and %q", got, err, status, detail)
	}
	if len(got.headers) > 1 && status != http.StatusConflict {
		t.Errorf("headers %v", got.headers)
	}
}

// TestHTTPMismatch shows that a key that was used for another request gets
// status 422, while the first is in progress and when it is completed.
func TestHTTPMismatch(t *testing.T) {
	t.Parallel()
	onEveryRoute(t, func(t *testing.T, r route, doc []byte) {
		f, other := newFixture(), edited(t, doc, withOtherBody)
		var call func([]byte) (reply, error)
		call = r(t, f, required, func() (reply, error) {
			got, err := call(other)
			wantProblem(t, got, err, http.StatusUnprocessableEntity, "another request")
			return created, nil
		}, middleware.OnHeld(middleware.Wait(1e9)))
		if got, err := call(doc); err != nil || got.status != created.status {
			t.Errorf("%+v, %v", got, err)
		}
		got, err := call(other)
		wantProblem(t, got, err, http.StatusUnprocessableEntity, "another request")
		f.want(t, lock.OutcomeAcquired, lock.OutcomeMismatch, lock.OutcomeReleased, lock.OutcomeMismatch)
	})
}

// TestHTTPWithoutKey shows that a request without a key gets status 400, or
// runs without a lock if the key is optional, and that a malformed key and an
// event of another source are refused in both cases.
func TestHTTPWithoutKey(t *testing.T) { // F26
	t.Parallel()
	onEveryRoute(t, func(t *testing.T, r route, doc []byte) {
		f, runs := newFixture(), 0
		do := func() (reply, error) { runs++; return created, nil }
		keyless := edited(t, doc, withoutHeader)
		malformed := edited(t, keyless, func(e map[string]any) {
			if e["headers"] == nil {
				e["headers"] = map[string]any{}
			}
			e["headers"].(map[string]any)["idempotency-key"] = ""
		})
		foreign := edited(t, doc, func(e map[string]any) { delete(e, "requestContext") })
		for _, o := range []keyOption{required, optional} {
			call := r(t, f, o, do)
			if got, err := call(keyless); o == required {
				wantProblem(t, got, err, http.StatusBadRequest, "is missing")
				f.want(t, lock.OutcomeRefused)
			} else if err != nil || got.status != created.status || runs != 1 {
				t.Errorf("optional: %+v, %v, %d runs", got, err, runs)
			}
			got, err := call(malformed)
			wantProblem(t, got, err, http.StatusBadRequest, "is empty")
			f.want(t, lock.OutcomeRefused)
			if got, err := call(foreign); !errors.As(err, new(*lock.KeyError)) {
				t.Errorf("another source: %+v, %v; want an error", got, err)
			}
			f.want(t, lock.OutcomeRefused)
		}
		if runs != 1 || f.faulty.Requests(locktest.Acquire) != 0 {
			t.Errorf("%d runs, %d requests; want one, without a lock", runs, f.faulty.Requests(locktest.Acquire))
		}
	})
}

// TestHTTPResponseTooLarge shows that a repeated request gets status 409, and
// never a zero response, if the first response was too large to be stored.
func TestHTTPResponseTooLarge(t *testing.T) { // F35
	t.Parallel()
	onEveryRoute(t, func(t *testing.T, r route, doc []byte) {
		f := newFixture()
		call := r(t, f, required, func() (reply, error) { return reply{status: 200, body: strings.Repeat("x", 400<<10)}, nil })
		if got, err := call(doc); err != nil || len(got.body) != 400<<10 {
			t.Errorf("status %d, %d bytes, %v", got.status, len(got.body), err)
		}
		if f.count(lock.OutcomeResultDropped) != 1 {
			t.Errorf("%v", f.outcomes())
		}
		got, err := call(doc)
		wantProblem(t, got, err, http.StatusConflict, "not stored")
		if after, ok := got.headers["retry-after"]; ok {
			t.Errorf("Retry-After: %q, although no retry gets the response", after)
		}
	})
}
