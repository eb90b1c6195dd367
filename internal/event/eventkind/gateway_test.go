package eventkind

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// TestGatewayOf shows that only the requests among all events are taken for
// requests.
func TestGatewayOf(t *testing.T) {
	t.Parallel()
	want := map[string]Gateway{
		"apigateway-rest.json": Payload1, "apigateway-websocket-connect.json": Payload1, "apigateway-websocket-message.json": Payload1,
		"apigateway-http.json": Payload2, "functionurl.json": Payload2,
		"alb.json": LoadBalancer, "alb-multivalue.json": LoadBalancer,
	}
	files, err := filepath.Glob("../../../keyfuncs/testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no events: %v", err)
	}
	for _, file := range files {
		doc := expect.Value(os.ReadFile(file))(t)
		if got := GatewayOf(doc); got != want[filepath.Base(file)] {
			t.Errorf("%s: %d, want %d", filepath.Base(file), got, want[filepath.Base(file)])
		}
	}
	for name, c := range map[string]struct {
		doc  string
		want Gateway
	}{
		"HTTP API, format 1.0":         {`{"version":"1.0","httpMethod":"GET","requestContext":{"apiId":"a","httpMethod":"GET"}}`, Payload1},
		"authorizer of a REST API":     {`{"type":"REQUEST","methodArn":"arn","httpMethod":"GET","requestContext":{"apiId":"a"}}`, NoGateway},
		"authorizer of an HTTP API":    {`{"version":"2.0","type":"REQUEST","routeArn":"arn","requestContext":{"apiId":"a","http":{"method":"GET"}}}`, NoGateway},
		"result of an async call":      {`{"version":"1.0","requestContext":{"requestId":"r","condition":"Success"},"requestPayload":{}}`, NoGateway},
		"something else":               {`{"requestContext":{"apiId":"a"}}`, NoGateway},
		"other types":                  {`{"requestContext":7}`, NoGateway},
		"not JSON":                     {`{"requestContext"`, NoGateway},
		"a request inside a message":   {`{"body":"{\"requestContext\":{}}"}`, NoGateway},
		"a request inside another one": {`{"detail":{"requestContext":{"elb":{"targetGroupArn":"arn"}}}}`, NoGateway},
		"nothing":                      {``, NoGateway},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := GatewayOf([]byte(c.doc)); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}
