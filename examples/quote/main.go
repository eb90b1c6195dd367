// quote makes an offer over HTTP. A retry gets the same offer again for as long
// as it stands, and after that a new one. That an article is sold out is final,
// too: without the option it would be asked again with each retry. A client
// that writes its JSON anew, with the members in another order, repeats its
// request; without PayloadFrom it would get status 422.
//
// Event source: an API Gateway HTTP API with payload format 2.0.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/jmespath"
	"github.com/lambdalock/lambdalock/middleware"
)

type (
	request  = events.APIGatewayV2HTTPRequest
	response = events.APIGatewayV2HTTPResponse
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	key := keyfuncs.PayloadFrom(keyfuncs.IdempotencyKey[request], keyfuncs.Join(
		keyfuncs.HTTPTarget[request], keyfuncs.HTTPBody[request](jmespath.Payload), keyfuncs.Caller[request]))
	lambda.Start(middleware.WithLock(key, handle, middleware.CompletedIf(final), middleware.RememberFor(stands)))
}

func final(r response) bool {
	return r.StatusCode == http.StatusCreated || r.StatusCode == http.StatusConflict
}

// stands returns how long the answer is replayed.
func stands(r response) time.Duration {
	if r.StatusCode == http.StatusCreated {
		return 15 * time.Minute
	}
	return 24 * time.Hour
}

type offer struct {
	ID       string `json:"offer"`
	Article  string `json:"article"`
	Quantity int    `json:"quantity"`
}

// handle is where your own work goes.
func handle(ctx context.Context, r request) (response, error) {
	var o offer
	if err := json.Unmarshal([]byte(r.Body), &o); err != nil || o.Article == "" || o.Quantity < 1 {
		return response{StatusCode: http.StatusBadRequest}, nil
	}
	slog.InfoContext(ctx, "stock checked", "article", o.Article)
	if o.Quantity > 100 {
		return response{StatusCode: http.StatusConflict, Body: "sold out"}, nil
	}
	o.ID = rand.Text()
	body, err := json.Marshal(o)
	return response{StatusCode: http.StatusCreated, Headers: map[string]string{"Content-Type": "application/json"}, Body: string(body)}, err
}
