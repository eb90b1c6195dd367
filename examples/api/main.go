// api takes payments over HTTP. A client sends an Idempotency-Key, which is new
// for every payment and the same in all retries. A retry gets the first answer
// again, status 409 while the first request is in progress, and its own run if
// that ended with status 500 or above. A key that is used for another payment,
// or with other credentials, gets status 422, and a request without one 400.
//
// Event source: an API Gateway HTTP API with payload format 2.0. Clients should
// retry within 24 h; for longer, add middleware.Remember. For routes that need
// no key, such as a GET, wrap the key function in keyfuncs.Optional.
package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

type (
	request  = events.APIGatewayV2HTTPRequest
	response = events.APIGatewayV2HTTPResponse
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	lambda.Start(middleware.WithLock(keyfuncs.IdempotencyKey[events.APIGatewayV2HTTPRequest], handle))
}

type payment struct {
	ID    string      `json:"payment"`
	Order json.Number `json:"order"`
}

// handle answers with 503 if a retry may succeed. 201 and 400 are stored and
// replayed.
func handle(ctx context.Context, r request) (response, error) {
	body := []byte(r.Body)
	if r.IsBase64Encoded {
		decoded, err := base64.StdEncoding.DecodeString(r.Body)
		if err != nil {
			return answer(http.StatusBadRequest, "the body is not base64")
		}
		body = decoded
	}
	var p payment
	if err := json.Unmarshal(body, &p); err != nil || p.Order == "" {
		return answer(http.StatusBadRequest, "the body must be JSON with the number of an order")
	}
	if err := charge(ctx, &p); err != nil {
		slog.ErrorContext(ctx, "charge the customer", "error", err)
		return answer(http.StatusServiceUnavailable, "try again in a moment")
	}
	return answer(http.StatusCreated, p)
}

// charge is where your own work goes. Pass the Idempotency-Key on if the
// service you call accepts one.
func charge(ctx context.Context, p *payment) error {
	p.ID = rand.Text()
	slog.InfoContext(ctx, "customer charged", "order", p.Order, "payment", p.ID)
	return nil
}

func answer(status int, v any) (response, error) {
	body, err := json.Marshal(v)
	return response{StatusCode: status, Headers: map[string]string{"Content-Type": "application/json"}, Body: string(body)}, err
}
