package keyfuncs_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
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
		return lock.Key{}, &lock.KeyError{Field: "order", Reason: "is missing"}
	}
	return lock.Key{Name: "order/" + p.Order.String(), Event: "e", Order: "o"}, nil
}

func TestBody(t *testing.T) {
	t.Parallel()
	for what, key := range map[string]func() (lock.Key, error){
		"REST": func() (lock.Key, error) {
			return keyfuncs.Body[events.APIGatewayProxyRequest](byPlaced)(t.Context(), load[events.APIGatewayProxyRequest](t, "apigateway-rest.json"))
		},
		"HTTP, base64": func() (lock.Key, error) {
			return keyfuncs.Body[events.APIGatewayV2HTTPRequest](byPlaced)(t.Context(), load[events.APIGatewayV2HTTPRequest](t, "apigateway-http.json"))
		},
		"WebSocket": func() (lock.Key, error) {
			return keyfuncs.Body[events.APIGatewayWebsocketProxyRequest](byPlaced)(t.Context(), load[events.APIGatewayWebsocketProxyRequest](t, "apigateway-websocket-message.json"))
		},
		"ALB": func() (lock.Key, error) {
			return keyfuncs.Body[events.ALBTargetGroupRequest](byPlaced)(t.Context(), load[events.ALBTargetGroupRequest](t, "alb.json"))
		},
		"ALB, base64": func() (lock.Key, error) {
			return keyfuncs.Body[events.ALBTargetGroupRequest](byPlaced)(t.Context(), load[events.ALBTargetGroupRequest](t, "alb-multivalue.json"))
		},
		"Function URL": func() (lock.Key, error) {
			return keyfuncs.Body[events.LambdaFunctionURLRequest](byPlaced)(t.Context(), load[events.LambdaFunctionURLRequest](t, "functionurl.json"))
		},
	} {
		if got, err := key(); got != (lock.Key{Name: "order/9007199254740993", Event: "e", Order: "o"}) || err != nil {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	whole := func(_ context.Context, b json.RawMessage) (lock.Key, error) { return lock.Key{Name: string(b)}, nil }
	if k, err := keyfuncs.Body[events.ALBTargetGroupRequest](whole)(t.Context(), events.ALBTargetGroupRequest{Body: `{"a":1}`}); k != (lock.Key{Name: `{"a":1}`}) || err != nil {
		t.Errorf("a body as it is: %+v, %v; want no event, as inner said", k, err)
	}
}

func TestBodyErrors(t *testing.T) { // F26
	t.Parallel()
	cause := errors.New("boom")
	plain := func(context.Context, placed) (lock.Key, error) { return lock.Key{}, cause }
	mine := &lock.KeyError{Field: "order", Reason: "is unknown"}
	wrapping := func(context.Context, placed) (lock.Key, error) { return lock.Key{}, fmt.Errorf("look up: %w", mine) }
	for what, c := range map[string]struct {
		inner  keyfuncs.Func[placed]
		body   string
		base64 bool
		field  string
		within string
		cause  any
		client bool
	}{
		"empty":         {byPlaced, "", false, "body", "not JSON of the expected shape", new(*json.SyntaxError), true},
		"not JSON":      {byPlaced, "order=7", false, "body", "not JSON of the expected shape", new(*json.SyntaxError), true},
		"other JSON":    {byPlaced, "[7]", false, "body", "not JSON of the expected shape", new(*json.UnmarshalTypeError), true},
		"not base64":    {byPlaced, "{}", true, "body", "not base64", new(base64.CorruptInputError), false}, // the gateway encodes
		"inner error":   {byPlaced, "{}", false, "body.order", "is missing", nil, true},
		"wrapped error": {wrapping, "{}", false, "body.order", "is unknown", nil, true},
		"no key error":  {plain, "{}", false, "", "boom", nil, false},
	} {
		for _, arn := range []string{"arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/t/1", ""} {
			e := events.ALBTargetGroupRequest{Body: c.body, IsBase64Encoded: c.base64}
			e.RequestContext.ELB.TargetGroupArn = arn
			_, err := keyfuncs.Body[events.ALBTargetGroupRequest](c.inner)(t.Context(), e)
			if c.field == "" {
				if !errors.Is(err, cause) || errors.As(err, new(*lock.KeyError)) {
					t.Errorf("%s: %v, want what the inner function returned", what, err)
				}
				continue
			}
			refused, ok := err.(*lock.KeyError)
			if !ok || refused.Field != c.field || !strings.Contains(refused.Reason, c.within) || c.cause != nil && !errors.As(err, c.cause) {
				t.Errorf("%s: %v, want a KeyError of %s that says %q", what, err, c.field, c.within)
			}
			// An event that came from no gateway has no client who could mend it.
			if ok && refused.Client != (c.client && arn != "") {
				t.Errorf("%s, target group %q: the client's fault: %v", what, arn, refused.Client)
			}
		}
	}
	if mine.Field != "order" || mine.Client {
		t.Errorf("the caller's error became %+v", mine)
	}
}

// TestBodyOfAnotherSource: every kind of request says where it came from.
func TestBodyOfAnotherSource(t *testing.T) {
	t.Parallel()
	client := func(_ lock.Key, err error) bool {
		var e *lock.KeyError
		return errors.As(err, &e) && e.Client
	}
	id := keyfuncs.JSON("id")
	rest, http2, socket, url := events.APIGatewayProxyRequest{Body: "{}"}, events.APIGatewayV2HTTPRequest{Body: "{}"}, events.APIGatewayWebsocketProxyRequest{Body: "{}"}, events.LambdaFunctionURLRequest{Body: "{}"}
	for _, of := range []string{"", "api"} {
		rest.RequestContext.APIID, http2.RequestContext.APIID, socket.RequestContext.APIID, url.RequestContext.APIID = of, of, of, of
		for what, got := range map[string]bool{
			"REST":         client(keyfuncs.Body[events.APIGatewayProxyRequest](id)(t.Context(), rest)),
			"HTTP":         client(keyfuncs.Body[events.APIGatewayV2HTTPRequest](id)(t.Context(), http2)),
			"WebSocket":    client(keyfuncs.Body[events.APIGatewayWebsocketProxyRequest](id)(t.Context(), socket)),
			"Function URL": client(keyfuncs.Body[events.LambdaFunctionURLRequest](id)(t.Context(), url)),
		} {
			if got != (of != "") {
				t.Errorf("%s with API %q: the client's fault: %v", what, of, got)
			}
		}
	}
}

// TestBodyWithoutAName: a body that names nothing is the client's mistake.
func TestBodyWithoutAName(t *testing.T) { // F26
	t.Parallel()
	nameless := func(context.Context, placed) (lock.Key, error) { return lock.Key{Event: "e"}, nil }
	e := events.ALBTargetGroupRequest{Body: "{}"}
	e.RequestContext.ELB.TargetGroupArn = "arn"
	var refused *lock.KeyError
	if _, err := keyfuncs.Body[events.ALBTargetGroupRequest](nameless)(t.Context(), e); !errors.As(err, &refused) || !refused.Client || refused.Field != "body" {
		t.Errorf("%v, want a KeyError of the client", err)
	}
}
