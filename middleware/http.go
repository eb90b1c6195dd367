package middleware

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/lock"
)

// isHTTPResponse reports whether the result type of a handler is an HTTP
// response.
func isHTTPResponse(result reflect.Type) bool {
	switch result {
	case reflect.TypeFor[events.APIGatewayProxyResponse](), reflect.TypeFor[*events.APIGatewayProxyResponse](),
		reflect.TypeFor[events.APIGatewayV2HTTPResponse](), reflect.TypeFor[*events.APIGatewayV2HTTPResponse](),
		reflect.TypeFor[events.LambdaFunctionURLResponse](), reflect.TypeFor[*events.LambdaFunctionURLResponse](),
		reflect.TypeFor[events.ALBTargetGroupResponse](), reflect.TypeFor[*events.ALBTargetGroupResponse](),
		reflect.TypeFor[*events.APIGatewayProxyStreamingResponse](), reflect.TypeFor[*events.LambdaFunctionURLStreamingResponse]():
		return true
	}
	return false
}

// badRequest returns a response with status 400 and what is wrong, in the
// handler's result type. It reports false if that type is not an HTTP response
// or the mistake is not the client's. The client does not see the cause of e,
// which may tell more than the request did.
//
// A load balancer takes the headers from the field for which its target group
// is configured and fails if it is missing, so both are set.
// https://docs.aws.amazon.com/elasticloadbalancing/latest/application/lambda-functions.html#multi-value-headers
func badRequest(result reflect.Type, e *lock.KeyError) (reflect.Value, bool) {
	if e == nil || !e.Client {
		return reflect.Value{}, false
	}
	const status, contentType = http.StatusBadRequest, "application/json"
	body, _ := json.Marshal(map[string]string{"message": e.Field + " " + e.Reason}) // strings always have a JSON form
	text, headers := string(body), map[string]string{"Content-Type": contentType}
	rest := events.APIGatewayProxyResponse{StatusCode: status, Headers: headers, Body: text}
	v2 := events.APIGatewayV2HTTPResponse{StatusCode: status, Headers: headers, Body: text}
	url := events.LambdaFunctionURLResponse{StatusCode: status, Headers: headers, Body: text}
	alb := events.ALBTargetGroupResponse{
		StatusCode: status, StatusDescription: "400 Bad Request", Body: text,
		Headers: headers, MultiValueHeaders: map[string][]string{"Content-Type": {contentType}},
	}
	for _, response := range []any{
		rest, &rest, v2, &v2, url, &url, alb, &alb,
		&events.APIGatewayProxyStreamingResponse{StatusCode: status, Headers: headers, Body: bytes.NewReader(body)},
		&events.LambdaFunctionURLStreamingResponse{StatusCode: status, Headers: headers, Body: bytes.NewReader(body)},
	} {
		if reflect.TypeOf(response) == result {
			return reflect.ValueOf(response), true
		}
	}
	return reflect.Value{}, false
}
