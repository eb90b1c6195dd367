package middleware_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
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

// keyOption says which key function a route has.
type keyOption int

const (
	required  keyOption = iota // IdempotencyKey
	optional                   // the same in Optional
	own                        // one of the user's, which knows nothing of callers
	anonymous                  // the same for everybody
)

func keyFor[E any](o keyOption) keyfuncs.Func[E] {
	order := keyfuncs.Once(keyfuncs.ByField(func(E) string { return "order-7" }))
	switch o {
	case optional:
		return keyfuncs.Optional(keyfuncs.IdempotencyKey[E])
	case own:
		return order
	case anonymous:
		return keyfuncs.PayloadFrom(order, keyfuncs.Anonymous)
	}
	return keyfuncs.IdempotencyKey[E]
}

// rawKeyFor is a key function that does not show by its type that it is for an
// HTTP request.
func rawKeyFor[E any](o keyOption) keyfuncs.Func[json.RawMessage] {
	return func(ctx context.Context, doc json.RawMessage) (lock.Key, error) {
		var e E
		if err := json.Unmarshal(doc, &e); err != nil {
			return lock.Key{}, err
		}
		return keyFor[E](o)(ctx, e)
	}
}

// typed is the route of a function that takes an E and returns an R.
func typed[E, R any](build func(reply) R) route {
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
			expect.Must(t, json.Unmarshal(doc, &e))
			out, err := h(t.Context(), e)
			return sent(t, out, err)
		}
	}
}

// untyped is the route of a function that takes raw JSON and returns anything.
func untyped[E, R any](build func(reply) R) route {
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
func rawMessage[E any](build func(reply) any) route {
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
func decodedMap[E any](build func(reply) any) route {
	return func(t *testing.T, f *fixture, o keyOption, do work, opts ...middleware.Option) func([]byte) (reply, error) {
		key := func(ctx context.Context, e any) (lock.Key, error) { return rawKeyFor[E](o)(ctx, toJSON(t, e)) }
		h := middleware.WithLock(key, func(context.Context, any) (any, error) {
			r, err := do()
			return build(r), err
		}, f.options(opts...)...)
		return func(doc []byte) (reply, error) {
			var e any
			expect.Must(t, json.Unmarshal(doc, &e))
			out, err := h(t.Context(), e)
			return sent(t, out, err)
		}
	}
}

// rawRoute is the route of a lambda.Handler with the key function of the event,
// or with one that takes raw JSON.
func rawRoute[E any](build func(reply) any, typedKey bool) route {
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
		Cookies           []string
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
	if len(r.Cookies) > 0 {
		got.headers["set-cookie"] = strings.Join(r.Cookies, ",")
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
	headers, cookies := withoutCookies(r.headers)
	return events.APIGatewayV2HTTPResponse{StatusCode: r.status, Headers: headers, Body: base64.StdEncoding.EncodeToString([]byte(r.body)), IsBase64Encoded: true, Cookies: cookies}
}

// withoutCookies returns the headers without cookies, and these as HTTP APIs
// and Function URLs take them.
func withoutCookies(headers map[string]string) (others map[string]string, cookies []string) {
	others = map[string]string{}
	for name, value := range headers {
		if strings.EqualFold(name, "Set-Cookie") {
			cookies = append(cookies, value)
		} else {
			others[name] = value
		}
	}
	return others, cookies
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
	headers, cookies := withoutCookies(r.headers)
	return &events.LambdaFunctionURLStreamingResponse{StatusCode: r.status, Headers: headers, Cookies: cookies, Body: strings.NewReader(r.body)}
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
		"defined of any": keyed[restEvent, any](func(r reply) definedRest { return definedRest(restOf(r)) }), "map of map": keyed[restEvent, definedMap](mapOf(restOf)),
		"reader of any": keyed[restEvent, any](asReader(apiStreamOf)), "RawMessage": rawMessage[restEvent](asAny(restOf)), "own type": typed[restEvent](ownOf), "any of any": decodedMap[restEvent](asAny(restOf)),
	},
	"apigateway-http": {
		"value": typed[v2Event](v2Of), "pointer": typed[v2Event](pointerTo(v2Of)), "any": typed[v2Event](asAny(v2Of)), "any by payload": untyped[v2Event](v2Of),
		"raw": rawRoute[v2Event](asAny(v2Of), true), "raw by payload": rawRoute[v2Event](asAny(v2Of), false), "RawMessage": rawMessage[v2Event](asAny(v2Of)),
		"defined": typed[definedEvent](definedOf), "embedded": typed[embeddedEvent](embeddedOf), "embedded pointers": typed[*pointingEvent](pointerTo(pointingOf)),
		"generic": typed[genericEvent[int]](genericOf), "of any": keyed[v2Event, any](asAny(v2Of)), "map of map": keyed[v2Event, map[string]any](mapOf(v2Of)),
		"own event": keyed[v2Event, ownEvent](ownOf), "own event without a context": keyed[v2Event, ownBody](ownOf), "any of own event by pointer": keyed[v2Event, *ownEvent](asAny(v2Of)),
		"own type of anything": keyed[v2Event, any](ownOf), "own type of map": keyed[v2Event, definedMap](pointerTo(ownOf)),
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
		"value": typed[albEvent](multiOf), "map of map": keyed[albEvent, map[string]any](mapOf(multiOf)), "pointer": typed[albEvent](pointerTo(multiOf)), "any by payload": untyped[albEvent](multiOf),
		"raw by payload": rawRoute[albEvent](asAny(multiOf), false),
	},
}

// onEveryRoute runs test on every route, in fake time, with the JSON of a
// request for it.
func onEveryRoute(t *testing.T, test func(t *testing.T, r route, doc []byte)) {
	t.Helper()
	for file, ways := range routes {
		doc := expect.Value(os.ReadFile("../keyfuncs/testdata/" + file + ".json"))(t)
		for way, r := range ways {
			t.Run(file+" "+way, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { test(t, r, doc) })
			})
		}
	}
}

// edited returns a request with one change.
func edited(t *testing.T, doc []byte, change func(map[string]any)) []byte {
	t.Helper()
	var e map[string]any
	expect.Must(t, json.Unmarshal(doc, &e))
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
