package keyfuncs_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

type placed struct {
	Order json.Number `json:"order"`
}

func byPlaced(_ context.Context, p placed) (lock.Key, error) {
	if p.Order == "" {
		return lock.Key{}, &lock.NoKeyError{Field: "order", Reason: "is missing"}
	}
	return lock.Key{Name: "order/" + p.Order.String(), Event: "e", Order: "o"}, nil
}

func TestHTTPBody(t *testing.T) {
	t.Parallel()
	want := lock.Key{Name: "order/9007199254740993", Event: "e", Order: "o"}
	gives(t, "apigateway-rest.json", keyfuncs.HTTPBody[events.APIGatewayProxyRequest](byPlaced), want)
	gives(t, "apigateway-http.json", keyfuncs.HTTPBody[events.APIGatewayV2HTTPRequest](byPlaced), want)
	gives(t, "apigateway-websocket-message.json", keyfuncs.HTTPBody[events.APIGatewayWebsocketProxyRequest](byPlaced), want)
	gives(t, "alb.json", keyfuncs.HTTPBody[events.ALBTargetGroupRequest](byPlaced), want)
	gives(t, "alb-multivalue.json", keyfuncs.HTTPBody[events.ALBTargetGroupRequest](byPlaced), want) // in base64
	gives(t, "functionurl.json", keyfuncs.HTTPBody[events.LambdaFunctionURLRequest](byPlaced), want)
	emulated := events.LambdaFunctionURLRequest{Body: `{"order":9007199254740993}`}
	emulated.RequestContext.DomainName = "localhost"
	if k, err := keyfuncs.HTTPBody[events.LambdaFunctionURLRequest](byPlaced)(t.Context(), emulated); k != want || err != nil {
		t.Errorf("a request that no gateway has sent: %+v, %v", k, err)
	}
	whole := keyfuncs.ByField(func(b json.RawMessage) string { return string(b) })
	if k, err := keyfuncs.HTTPBody[events.ALBTargetGroupRequest](whole)(t.Context(), events.ALBTargetGroupRequest{Body: `{"a":1}`}); k != (lock.Key{Name: `{"a":1}`}) || err != nil {
		t.Errorf("the body unchanged: %+v, %v; want no event, as inner said", k, err)
	}
	ofAny := keyfuncs.HTTPBody[any](byPlaced)
	gives(t, "alb.json", func(ctx context.Context, e albRequest) (lock.Key, error) { return ofAny(ctx, e) }, want)
	_, err := ofAny(t.Context(), events.SQSEvent{})
	refused(t, "no request", err, "the event", "without an HTTP request")
}

func hasCause[E error](err error) bool { return errors.As(err, new(E)) }

func TestHTTPBodyErrors(t *testing.T) { // F26
	t.Parallel()
	cause := errors.New("boom")
	plain := func(context.Context, placed) (lock.Key, error) { return lock.Key{}, cause }
	mine := &lock.NoKeyError{Field: "order", Reason: "is unknown"}
	wrapping := func(context.Context, placed) (lock.Key, error) { return lock.Key{}, fmt.Errorf("look up: %w", mine) }
	for what, c := range map[string]struct {
		inner  keyfuncs.Func[placed]
		body   string
		base64 bool
		field  string
		within string
		cause  func(error) bool // nil: any
		client bool
	}{
		"white space":   {byPlaced, " ", false, "body", "not JSON of the expected shape", hasCause[*json.SyntaxError], true},
		"not JSON":      {byPlaced, "order=7", false, "body", "not JSON of the expected shape", hasCause[*json.SyntaxError], true},
		"other JSON":    {byPlaced, "[7]", false, "body", "not JSON of the expected shape", hasCause[*json.UnmarshalTypeError], true},
		"not base64":    {byPlaced, "{}", true, "body", "not base64", hasCause[base64.CorruptInputError], false}, // the gateway encodes
		"inner error":   {byPlaced, "{}", false, "body.order", "is missing", nil, true},
		"wrapped error": {wrapping, "{}", false, "body.order", "is unknown", nil, true},
		"no key error":  {plain, "{}", false, "", "boom", nil, false},
	} {
		for _, arn := range []string{"arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/t/1", ""} {
			t.Run(what+", target group "+arn, func(t *testing.T) {
				t.Parallel()
				e := events.ALBTargetGroupRequest{HTTPMethod: "POST", Path: "/", Body: c.body, IsBase64Encoded: c.base64}
				e.RequestContext.ELB.TargetGroupArn = arn
				_, err := keyfuncs.HTTPBody[events.ALBTargetGroupRequest](c.inner)(t.Context(), e)
				if c.field == "" {
					if !errors.Is(err, cause) || errors.As(err, new(*lock.NoKeyError)) {
						t.Errorf("%v, want what the inner function returned", err)
					}
					return
				}
				refused, ok := err.(*lock.NoKeyError)
				if !ok || refused.Field != c.field || !strings.Contains(refused.Reason, c.within) || c.cause != nil && !c.cause(err) {
					t.Errorf("%v, want a NoKeyError of %s that says %q", err, c.field, c.within)
				}
				// An event that did not come from a gateway has no client who
				// could put it right.
				if ok && refused.Client != (c.client && arn != "") {
					t.Errorf("the client's fault: %v", refused.Client)
				}
			})
		}
	}
	t.Cleanup(func() {
		if mine.Field != "order" || mine.Client {
			t.Errorf("the caller's error became %+v", mine)
		}
	})
}

// TestHTTPClientReadsNothingOfTheCode shows that what a client gets to see of
// an error, its Field and Reason, speaks of the request; what to change in the
// code is left to Err, which only logs show.
func TestHTTPClientReadsNothingOfTheCode(t *testing.T) {
	t.Parallel()
	field := func(name string) keyfuncs.Func[map[string]string] {
		return keyfuncs.ByField(func(m map[string]string) string { return m[name] })
	}
	a, b := field("a"), field("b")
	for what, c := range map[string]struct {
		inner keyfuncs.Func[map[string]string]
		body  string
		field string
		err   string
	}{
		"EventFrom":   {keyfuncs.EventFrom(a, b), `{"a":"1"}`, "body", "second key function of EventFrom"},
		"PayloadFrom": {keyfuncs.PayloadFrom(a, b), `{"a":"1"}`, "body", "second key function of PayloadFrom"},
		"OrderFrom":   {keyfuncs.OrderFrom(a, b), `{"a":"1"}`, "body", "second key function of OrderFrom"},
		"Join":        {keyfuncs.Join(a, b), `{"a":"1"}`, "body", "part 2 of Join"},
		"ByField":     {a, `{"a":"\ufffd"}`, "body", "keyfuncs.ByField"},
		"half a pair": {keyfuncs.Hash(a), `{"a":"\ud800"}`, "body", "keyfuncs.ByField"},
		"and raw":     {func(_ context.Context, m map[string]string) (lock.Key, error) { return lock.Key{Name: m["a"]}, nil }, `{"a":"\ud800"}`, "body.text", "package jmespath"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			_, err := keyfuncs.HTTPBody[events.ALBTargetGroupRequest](c.inner)(t.Context(), events.ALBTargetGroupRequest{
				HTTPMethod: "POST", Path: "/", Body: c.body, RequestContext: events.ALBTargetGroupRequestContext{ELB: events.ELBContext{TargetGroupArn: "arn"}},
			})
			var e *lock.NoKeyError
			if !errors.As(err, &e) || !e.Client || e.Field != c.field || !strings.Contains(err.Error(), c.err) {
				t.Fatalf("%+v; want a mistake of the client, in %s, whose cause names %q", err, c.field, c.err)
			}
			for _, word := range []string{"key function", "keyfuncs", "json tag", "lambdalock", "Go ", "Name", "package"} {
				if strings.Contains(e.Reason, word) {
					t.Errorf("the client reads %q in %q", word, e.Reason)
				}
			}
		})
	}
}

// TestHTTPBodyOfAnotherSource: every kind of request says where it came from.
func TestHTTPBodyOfAnotherSource(t *testing.T) {
	t.Parallel()
	rest, http := events.APIGatewayProxyRequest{HTTPMethod: "POST", Path: "/", Body: "{}"}, events.APIGatewayV2HTTPRequest{RawPath: "/", Body: "{}"}
	socket, url := events.APIGatewayWebsocketProxyRequest{Body: "{}"}, events.LambdaFunctionURLRequest{RawPath: "/", Body: "{}"}
	http.RequestContext.HTTP.Method, url.RequestContext.HTTP.Method = "POST", "POST"
	socket.RequestContext.EventType, socket.RequestContext.RouteKey = "MESSAGE", "$default"
	for _, api := range []string{"", "api"} {
		rest.RequestContext.APIID, http.RequestContext.APIID, socket.RequestContext.APIID, url.RequestContext.APIID = api, api, api, api
		blames(t, rest, api != "")
		blames(t, http, api != "")
		blames(t, socket, api != "")
		blames(t, url, api != "")
	}
}

// blames checks whether a body without an order is the client's fault.
func blames[E any](t *testing.T, e E, client bool) {
	t.Helper()
	t.Run(fmt.Sprintf("%T %v", e, client), func(t *testing.T) {
		_, err := keyfuncs.HTTPBody[E](byPlaced)(t.Context(), e)
		var refused *lock.NoKeyError
		if !errors.As(err, &refused) || refused.Client != client {
			t.Errorf("%v, want a NoKeyError; the client's fault: %v", err, client)
		}
	})
}

// TestHTTPBodyWithoutAName: a body that names nothing is the client's mistake.
func TestHTTPBodyWithoutAName(t *testing.T) { // F26
	t.Parallel()
	nameless := func(context.Context, placed) (lock.Key, error) { return lock.Key{Event: "e"}, nil }
	e := events.ALBTargetGroupRequest{HTTPMethod: "POST", Path: "/", Body: "{}"}
	e.RequestContext.ELB.TargetGroupArn = "arn"
	var refused *lock.NoKeyError
	if _, err := keyfuncs.HTTPBody[events.ALBTargetGroupRequest](nameless)(t.Context(), e); !errors.As(err, &refused) || !refused.Client || refused.Field != "body" {
		t.Errorf("%v, want a NoKeyError of the client", err)
	}
}

// TestRequestsOfAnotherGateway: in the type of another gateway the caller has
// no place, so strangers would look alike.
func TestRequestsOfAnotherGateway(t *testing.T) { // F26
	t.Parallel()
	refusesOthers[events.APIGatewayProxyRequest](t, "apigateway-rest.json")
	refusesOthers[events.APIGatewayV2HTTPRequest](t, "apigateway-http.json", "functionurl.json", "alb-multivalue.json")
	refusesOthers[events.APIGatewayWebsocketProxyRequest](t, "apigateway-websocket-connect.json", "apigateway-websocket-message.json")
	refusesOthers[events.ALBTargetGroupRequest](t, "alb.json", "alb-multivalue.json", "apigateway-websocket-message.json")
	refusesOthers[events.LambdaFunctionURLRequest](t, "functionurl.json", "alb-multivalue.json")
}

// refusesOthers checks that all requests are refused but those that fit E, and
// those of which E takes only the body, as of one that a test builds.
func refusesOthers[E any](t *testing.T, fits ...string) {
	t.Helper()
	for _, file := range []string{
		"apigateway-rest.json", "apigateway-http.json", "apigateway-websocket-connect.json", "apigateway-websocket-message.json",
		"alb.json", "alb-multivalue.json", "functionurl.json",
	} {
		for name, key := range map[string]keyfuncs.Func[E]{"HTTPBody": keyfuncs.HTTPBody[E](byPlaced), "Caller": keyfuncs.Caller[E]} {
			if file == "apigateway-websocket-connect.json" && name == "HTTPBody" { // it has no body
				continue
			}
			t.Run(fmt.Sprintf("%s of %T, %s", name, *new(E), file), func(t *testing.T) {
				t.Parallel()
				_, err := key(t.Context(), load[E](t, file))
				var refused *lock.NoKeyError
				if slices.Contains(fits, file) != !errors.As(err, &refused) || refused != nil && refused.Client {
					t.Errorf("%v", err)
				}
			})
		}
	}
}
