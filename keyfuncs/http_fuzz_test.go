package keyfuncs_test

import (
	"context"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// whole locks what was decoded, so that the harness sees whether it is deterministic.
func whole(_ context.Context, p placed) (lock.Key, error) {
	return lock.Key{Name: "order/" + p.Order.String()}, nil
}

func FuzzAPIGatewayREST(f *testing.F) {
	fuzzKeys(f, "apigateway-rest", map[string]keyfuncs.Func[events.APIGatewayProxyRequest]{
		"APIGatewayREST": keyfuncs.APIGatewayREST, "Body": keyfuncs.Body[events.APIGatewayProxyRequest](whole),
	})
}

func FuzzAPIGatewayHTTP(f *testing.F) {
	fuzzKeys(f, "apigateway-http", map[string]keyfuncs.Func[events.APIGatewayV2HTTPRequest]{
		"APIGatewayHTTP": keyfuncs.APIGatewayHTTP, "Body": keyfuncs.Body[events.APIGatewayV2HTTPRequest](whole),
	})
}

func FuzzAPIGatewayWebSocket(f *testing.F) {
	fuzzKeys(f, "apigateway-websocket-", map[string]keyfuncs.Func[events.APIGatewayWebsocketProxyRequest]{
		"APIGatewayWebSocket": keyfuncs.APIGatewayWebSocket, "Body": keyfuncs.Body[events.APIGatewayWebsocketProxyRequest](whole),
	})
}

func FuzzALB(f *testing.F) {
	fuzzKeys(f, "alb", map[string]keyfuncs.Func[events.ALBTargetGroupRequest]{
		"ALB": keyfuncs.ALB, "Body": keyfuncs.Body[events.ALBTargetGroupRequest](whole),
	})
}

func FuzzFunctionURL(f *testing.F) {
	fuzzKeys(f, "functionurl", map[string]keyfuncs.Func[events.LambdaFunctionURLRequest]{
		"FunctionURL": keyfuncs.FunctionURL, "Body": keyfuncs.Body[events.LambdaFunctionURLRequest](whole),
	})
}
