package eventkind

import (
	"bytes"
	"cmp"
	"encoding/json"
)

// Gateway is what sends an HTTP request to a function and reads its response.
type Gateway int

// The gateways, by how they read a response.
const (
	NoGateway Gateway = iota
	// Payload1 is a REST API, an HTTP API with payload format 1.0, or a WebSocket
	// API.
	Payload1
	// Payload2 is an HTTP API with payload format 2.0, or a Function URL.
	Payload2
	LoadBalancer
)

// GatewayOf returns the gateway that sent an event. The event of a Lambda
// authorizer looks like a request, but its result is not a response; only that
// event names the ARN of what is called.
// https://docs.aws.amazon.com/apigateway/latest/developerguide/apigateway-lambda-authorizer-input.html
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-lambda-authorizer.html
func GatewayOf(doc []byte) Gateway {
	if !bytes.Contains(doc, []byte(`"requestContext"`)) { // most events, so save their decoding
		return NoGateway
	}
	var event struct {
		MethodARN      json.RawMessage `json:"methodArn"`
		RouteARN       json.RawMessage `json:"routeArn"`
		HTTPMethod     string          `json:"httpMethod"`
		RequestContext struct {
			APIID        string `json:"apiId"`
			ConnectionID string `json:"connectionId"`
			HTTP         struct {
				Method string `json:"method"`
			} `json:"http"`
			ELB struct {
				TargetGroupARN string `json:"targetGroupArn"`
			} `json:"elb"`
		} `json:"requestContext"`
	}
	if json.Unmarshal(doc, &event) != nil || event.MethodARN != nil || event.RouteARN != nil {
		return NoGateway
	}
	c := event.RequestContext
	switch {
	case c.ELB.TargetGroupARN != "":
		return LoadBalancer
	case c.APIID != "" && c.HTTP.Method != "":
		return Payload2
	case c.APIID != "" && (event.HTTPMethod != "" || c.ConnectionID != ""):
		return Payload1
	}
	return NoGateway
}

// MethodOf returns the method of the request in an event of a gateway, or "".
func MethodOf(doc []byte) string {
	var event struct {
		HTTPMethod     string `json:"httpMethod"`
		RequestContext struct {
			HTTP struct {
				Method string `json:"method"`
			} `json:"http"`
		} `json:"requestContext"`
	}
	_ = json.Unmarshal(doc, &event) // other JSON has no method
	return cmp.Or(event.HTTPMethod, event.RequestContext.HTTP.Method)
}
