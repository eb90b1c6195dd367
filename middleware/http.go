package middleware

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/lock"
)

// answersHTTP reports whether a handler's result is an HTTP response.
func answersHTTP(result reflect.Type) bool {
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

// badRequest returns the 400 response of the handler's result type for a request whose
// key is refused, or false if that type is not an HTTP response or the mistake is not
// the client's. The cause of e stays inside: it may speak of more than the request.
//
// A load balancer wants the headers in the field that its target group is configured
// for, and fails if that one is missing.
// https://docs.aws.amazon.com/elasticloadbalancing/latest/application/lambda-functions.html#multi-value-headers
func badRequest(result reflect.Type, e *lock.KeyError) (reflect.Value, bool) {
	if e == nil || !e.Client || !answersHTTP(result) {
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
