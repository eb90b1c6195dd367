package eventkind_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
)

// TestGatewayOf shows that only the requests among all events are taken for
// requests.
func TestGatewayOf(t *testing.T) {
	t.Parallel()
	want := map[string]eventkind.Gateway{
		"apigateway-rest.json": eventkind.Payload1, "apigateway-websocket-connect.json": eventkind.Payload1, "apigateway-websocket-message.json": eventkind.Payload1,
		"apigateway-http.json": eventkind.Payload2, "functionurl.json": eventkind.Payload2,
		"alb.json": eventkind.LoadBalancer, "alb-multivalue.json": eventkind.LoadBalancer,
	}
	files, err := filepath.Glob("../../../keyfuncs/testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no events: %v", err)
	}
	for _, file := range files {
		doc, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := eventkind.GatewayOf(doc); got != want[filepath.Base(file)] {
			t.Errorf("%s: %d, want %d", filepath.Base(file), got, want[filepath.Base(file)])
		}
	}
	for name, c := range map[string]struct {
		doc  string
		want eventkind.Gateway
	}{
		"HTTP API, format 1.0":         {`{"version":"1.0","httpMethod":"GET","requestContext":{"apiId":"a","httpMethod":"GET"}}`, eventkind.Payload1},
		"authorizer of a REST API":     {`{"type":"REQUEST","methodArn":"arn","httpMethod":"GET","requestContext":{"apiId":"a"}}`, eventkind.NoGateway},
		"authorizer of an HTTP API":    {`{"version":"2.0","type":"REQUEST","routeArn":"arn","requestContext":{"apiId":"a","http":{"method":"GET"}}}`, eventkind.NoGateway},
		"result of an async call":      {`{"version":"1.0","requestContext":{"requestId":"r","condition":"Success"},"requestPayload":{}}`, eventkind.NoGateway},
		"something else":               {`{"requestContext":{"apiId":"a"}}`, eventkind.NoGateway},
		"other types":                  {`{"requestContext":7}`, eventkind.NoGateway},
		"not JSON":                     {`{"requestContext"`, eventkind.NoGateway},
		"a request inside a message":   {`{"body":"{\"requestContext\":{}}"}`, eventkind.NoGateway},
		"a request inside another one": {`{"detail":{"requestContext":{"elb":{"targetGroupArn":"arn"}}}}`, eventkind.NoGateway},
		"nothing":                      {``, eventkind.NoGateway},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := eventkind.GatewayOf([]byte(c.doc)); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}
