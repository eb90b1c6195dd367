package eventkind

import (
	"context"
	"reflect"

	"github.com/aws/aws-lambda-go/events"
)

// httpType is a type of aws-lambda-go for HTTP requests or responses.
type httpType struct {
	of      reflect.Type
	gateway Gateway
}

var requests = []httpType{
	{reflect.TypeFor[events.APIGatewayProxyRequest](), Payload1},
	{reflect.TypeFor[events.APIGatewayV2HTTPRequest](), Payload2},
	{reflect.TypeFor[events.APIGatewayWebsocketProxyRequest](), Payload1},
	{reflect.TypeFor[events.ALBTargetGroupRequest](), LoadBalancer},
	{reflect.TypeFor[events.LambdaFunctionURLRequest](), Payload2},
}

var responses = []httpType{
	{reflect.TypeFor[events.APIGatewayProxyResponse](), Payload1},
	{reflect.TypeFor[events.APIGatewayProxyStreamingResponse](), Payload1},
	{reflect.TypeFor[events.APIGatewayV2HTTPResponse](), Payload2},
	{reflect.TypeFor[events.LambdaFunctionURLResponse](), Payload2},
	{reflect.TypeFor[events.LambdaFunctionURLStreamingResponse](), Payload2},
	{reflect.TypeFor[events.ALBTargetGroupResponse](), LoadBalancer},
}

// GatewayOfRequest returns the gateway whose requests a type holds.
func GatewayOfRequest(t reflect.Type) Gateway { return find(t, requests).gateway }

// GatewayOfResponse returns the gateway whose responses a type holds.
func GatewayOfResponse(t reflect.Type) Gateway { return find(t, responses).gateway }

// RequestIn returns the HTTP request that an event is, points to or embeds.
func RequestIn(event any) (any, bool) {
	switch event.(type) {
	case nil:
		return nil, false
	case events.APIGatewayProxyRequest, events.APIGatewayV2HTTPRequest, events.APIGatewayWebsocketProxyRequest,
		events.ALBTargetGroupRequest, events.LambdaFunctionURLRequest: // nearly always
		return event, true
	}
	p := find(reflect.TypeOf(event), requests)
	if p.gateway == NoGateway {
		return nil, false
	}
	return p.in(reflect.ValueOf(event))
}

type onlyCallerKey struct{}

// WithOnlyCaller tells the key function of a caller that it gets only those
// parts of a request in which the caller is, so what else is missing says
// nothing about the gateway.
func WithOnlyCaller(ctx context.Context) context.Context {
	return context.WithValue(ctx, onlyCallerKey{}, true)
}

// IsOnlyOfCaller reports whether ctx comes from [WithOnlyCaller].
func IsOnlyOfCaller(ctx context.Context) bool { return ctx.Value(onlyCallerKey{}) != nil }
