package shape

import (
	"reflect"

	"github.com/aws/aws-lambda-go/events"
)

// requests are the types of HTTP requests.
var requests = []reflect.Type{
	reflect.TypeFor[events.APIGatewayProxyRequest](),
	reflect.TypeFor[events.APIGatewayV2HTTPRequest](),
	reflect.TypeFor[events.APIGatewayWebsocketProxyRequest](),
	reflect.TypeFor[events.ALBTargetGroupRequest](),
	reflect.TypeFor[events.LambdaFunctionURLRequest](),
}

// Request returns the place of an HTTP request in a type.
func Request(t reflect.Type) (Place, bool) { return Find(t, requests) }

// RequestIn returns the HTTP request that an event is, points to or embeds.
func RequestIn(event any) (any, bool) {
	switch event.(type) {
	case nil:
		return nil, false
	case events.APIGatewayProxyRequest, events.APIGatewayV2HTTPRequest, events.APIGatewayWebsocketProxyRequest,
		events.ALBTargetGroupRequest, events.LambdaFunctionURLRequest: // nearly always
		return event, true
	}
	p, ok := Request(reflect.TypeOf(event))
	if !ok {
		return nil, false
	}
	return p.In(reflect.ValueOf(event))
}

// responses are the types of HTTP responses.
var responses = []reflect.Type{
	reflect.TypeFor[events.APIGatewayProxyResponse](),
	reflect.TypeFor[events.APIGatewayProxyStreamingResponse](),
	reflect.TypeFor[events.APIGatewayV2HTTPResponse](),
	reflect.TypeFor[events.LambdaFunctionURLResponse](),
	reflect.TypeFor[events.LambdaFunctionURLStreamingResponse](),
	reflect.TypeFor[events.ALBTargetGroupResponse](),
}

// Response returns the place of an HTTP response in a type.
func Response(t reflect.Type) (Place, bool) { return Find(t, responses) }
