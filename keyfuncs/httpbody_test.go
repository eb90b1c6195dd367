package keyfuncs_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
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
	for what, c := range map[string]struct {
		body   string
		base64 bool
		field  string
		within string
		cause  any
	}{
		"empty":       {"", false, "body", "not JSON of the expected shape", new(*json.SyntaxError)},
		"not JSON":    {"order=7", false, "body", "not JSON of the expected shape", new(*json.SyntaxError)},
		"other JSON":  {"[7]", false, "body", "not JSON of the expected shape", new(*json.UnmarshalTypeError)},
		"not base64":  {"{}", true, "body", "not base64", new(base64.CorruptInputError)},
		"inner error": {"{}", false, "body.order", "is missing", nil},
	} {
		_, err := keyfuncs.Body[events.ALBTargetGroupRequest](byPlaced)(t.Context(), events.ALBTargetGroupRequest{Body: c.body, IsBase64Encoded: c.base64})
		e, ok := err.(*lock.KeyError)
		if !ok || e.Field != c.field || !strings.Contains(e.Reason, c.within) || c.cause != nil && !errors.As(err, c.cause) {
			t.Errorf("%s: %v, want a KeyError of %s that says %q", what, err, c.field, c.within)
		}
	}
}
