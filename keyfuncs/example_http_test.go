package keyfuncs_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

func ExampleIdempotencyKey() {
	e := events.APIGatewayV2HTTPRequest{
		Version:        "2.0",
		RawPath:        "/orders",
		Headers:        map[string]string{"idempotency-key": "8e03978e"},
		RequestContext: events.APIGatewayV2HTTPRequestContext{APIID: "a1b2c3", Stage: "$default"},
	}
	e.RequestContext.HTTP.Method = "POST"
	show(keyfuncs.IdempotencyKey(context.Background(), e))
	// Output: name "http/a1b2c3/$default/nobody/8e03978e", event "8e03978e", order "", error <nil>
}

func ExampleIdempotencyKey_rest() {
	show(keyfuncs.IdempotencyKey(context.Background(), events.APIGatewayProxyRequest{
		HTTPMethod: "POST",
		Path:       "/orders",
		Headers:    map[string]string{"Idempotency-Key": "8e03978e"},
		RequestContext: events.APIGatewayProxyRequestContext{
			APIID: "a1b2c3", Stage: "prod", Authorizer: map[string]any{"principalId": "jane"},
		},
	}))
	// Output: name "http/a1b2c3/prod/jane/8e03978e", event "8e03978e", order "", error <nil>
}

func ExampleIdempotencyKey_webSocket() {
	show(keyfuncs.IdempotencyKey(context.Background(), events.APIGatewayWebsocketProxyRequest{
		Headers: map[string]string{"Idempotency-Key": "8e03978e"},
		RequestContext: events.APIGatewayWebsocketProxyRequestContext{
			APIID: "a1b2c3", Stage: "prod", EventType: "CONNECT", RouteKey: "$connect",
		},
	}))
	// Output: name "http/a1b2c3/prod/nobody/8e03978e", event "8e03978e", order "", error <nil>
}

func ExampleIdempotencyKey_loadBalancer() {
	e := events.ALBTargetGroupRequest{
		HTTPMethod: "POST",
		Path:       "/orders",
		Headers:    map[string]string{"idempotency-key": "8e03978e"},
	}
	e.RequestContext.ELB.TargetGroupArn = "arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/orders/0a1b"
	show(keyfuncs.IdempotencyKey(context.Background(), e))
	// Output: name "http/arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup%2Forders%2F0a1b//nobody/8e03978e", event "8e03978e", order "", error <nil>
}

func ExampleIdempotencyKey_functionURL() {
	e := events.LambdaFunctionURLRequest{
		RawPath:        "/orders",
		Headers:        map[string]string{"idempotency-key": "8e03978e"},
		RequestContext: events.LambdaFunctionURLRequestContext{APIID: "u4l0f1u2"},
	}
	e.RequestContext.HTTP.Method = "POST"
	show(keyfuncs.IdempotencyKey(context.Background(), e))
	// Output: name "http/u4l0f1u2//nobody/8e03978e", event "8e03978e", order "", error <nil>
}

// A message that a client sends over a WebSocket has an id in its body, and no
// headers.
func ExampleHTTPBody() {
	perMessage := func(_ context.Context, m struct{ Customer, ID json.Number }) (lock.Key, error) {
		return lock.Key{Name: "customer/" + m.Customer.String(), Event: m.ID.String()}, nil
	}
	key := keyfuncs.HTTPBody[events.APIGatewayWebsocketProxyRequest](perMessage)
	show(key(context.Background(), events.APIGatewayWebsocketProxyRequest{Body: `{"customer": 7, "id": 9007199254740993}`}))
	// Output: name "customer/7", event "9007199254740993", order "", error <nil>
}

// Requests without the header, such as a GET, run without a lock.
func ExampleOptional() {
	key := keyfuncs.Optional(keyfuncs.IdempotencyKey[events.APIGatewayV2HTTPRequest])
	e := events.APIGatewayV2HTTPRequest{RawPath: "/orders"}
	e.RequestContext.APIID, e.RequestContext.HTTP.Method = "a1b2c3", "GET"
	show(key(context.Background(), e))
	// Output: name "", event "", order "", error lambdalock: the event needs no lock
}

// Two payments with one id but different amounts are a mistake of the caller.
func ExamplePayloadFrom() {
	type payment struct{ ID, Amount string }
	id := keyfuncs.ByField(func(p payment) string { return p.ID })
	amount := keyfuncs.ByField(func(p payment) string { return p.Amount })
	k, err := keyfuncs.PayloadFrom(keyfuncs.Once(id), amount)(context.Background(), payment{ID: "7", Amount: "100"})
	fmt.Println(k.Payload, err)
	// Output: 100 <nil>
}

// paid is a request of a client that sends a cookie of its session and another
// one that changes.
func paid(analytics string) events.APIGatewayV2HTTPRequest {
	e := events.APIGatewayV2HTTPRequest{
		Version: "2.0",
		RawPath: "/payments",
		Headers: map[string]string{"idempotency-key": "8e03978e", "x-github-delivery": "72d3162e", "authorization": "Bearer 1"},
		Cookies: []string{"session=1", "_ga=" + analytics},

		RequestContext: events.APIGatewayV2HTTPRequestContext{APIID: "a1b2c3", Stage: "$default"},
	}
	e.RequestContext.HTTP.Method = "POST"
	return e
}

// Another header, which names the event of a webhook.
func ExampleHeaderKey() {
	key := keyfuncs.HeaderKey("X-GitHub-Delivery", keyfuncs.Caller[events.APIGatewayV2HTTPRequest])
	show(key(context.Background(), paid("1")))
	// Output: name "http/a1b2c3/$default/nobody/72d3162e", event "72d3162e", order "", error <nil>
}

// A caller that code around the wrapped handler has found out.
func ExampleHeaderKey_caller() {
	type user struct{}
	byUser := func(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (lock.Key, error) {
		name, _ := ctx.Value(user{}).(string) // empty: an error
		return lock.Key{Name: name}, nil
	}
	key := keyfuncs.HeaderKey("Idempotency-Key", byUser)
	show(key(context.WithValue(context.Background(), user{}, "jane"), paid("1")))
	// Output: name "http/a1b2c3/$default/jane/8e03978e", event "8e03978e", order "", error <nil>
}

// sameCaller reports whether two requests that differ in a cookie of analytics
// have the same payload.
func sameCaller(key keyfuncs.Func[events.APIGatewayV2HTTPRequest]) bool {
	first, _ := key(context.Background(), paid("1"))
	again, _ := key(context.Background(), paid("2"))
	return first.Payload == again.Payload
}

// The gateway authenticated nobody, so every cookie may say who it is.
func ExampleCaller() {
	k, err := keyfuncs.Caller(context.Background(), paid("1"))
	fmt.Println(k.Name, err, sameCaller(keyfuncs.Caller[events.APIGatewayV2HTTPRequest]))
	// Output: nobody <nil> false
}

func ExampleSessionCookie() {
	fmt.Println(sameCaller(keyfuncs.SessionCookie[events.APIGatewayV2HTTPRequest]("session")))
	// Output: true
}

// Everybody who has the key gets the answer.
func ExampleAnonymous() {
	key := keyfuncs.HeaderKey("Idempotency-Key", keyfuncs.Anonymous[events.APIGatewayV2HTTPRequest])
	show(key(context.Background(), paid("1")))
	fmt.Println(sameCaller(key))
	// Output:
	// name "http/a1b2c3/$default/anonymous/8e03978e", event "8e03978e", order "", error <nil>
	// true
}
