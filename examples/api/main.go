// api takes payments over HTTP. A client sends an Idempotency-Key, which is new
// for every payment and the same in all retries. A retry gets the first answer
// again, or status 409 while the first request is still in progress. A request
// without the header gets status 400.
//
// Event source: an API Gateway HTTP API with payload format 2.0. Clients should
// retry within 24 h; for longer, add middleware.Remember.
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
	lambda.Start(middleware.WithLock(keyfuncs.IdempotencyKey[events.APIGatewayV2HTTPRequest], handle,
		middleware.OnCompleted(middleware.Replay),
		middleware.OnHeld(middleware.Respond(problem(http.StatusConflict, "the payment is under way: ask again in a moment")))))
}

type payment struct {
	ID    string      `json:"payment"`
	Order json.Number `json:"order"`
}

// handle returns an error only if a retry may succeed. Every answer, even one
// with status 400, is stored and replayed.
func handle(ctx context.Context, r request) (response, error) {
	body := []byte(r.Body)
	if r.IsBase64Encoded {
		decoded, err := base64.StdEncoding.DecodeString(r.Body)
		if err != nil {
			return problem(http.StatusBadRequest, "the body is not base64"), nil
		}
		body = decoded
	}
	var p payment
	if err := json.Unmarshal(body, &p); err != nil || p.Order == "" {
		return problem(http.StatusBadRequest, "the body must be JSON with the number of an order"), nil
	}
	if err := charge(ctx, &p); err != nil {
		return response{}, err
	}
	return answer(http.StatusCreated, p), nil
}

// charge is where your own work goes. Pass the Idempotency-Key on if the
// service you call accepts one.
func charge(ctx context.Context, p *payment) error {
	p.ID = rand.Text()
	slog.InfoContext(ctx, "customer charged", "order", p.Order, "payment", p.ID)
	return nil
}

func problem(status int, message string) response {
	return answer(status, map[string]string{"message": message})
}

func answer(status int, v any) response {
	body, err := json.Marshal(v)
	if err != nil {
		slog.Error("encode the answer", "error", err)
		status, body = http.StatusInternalServerError, nil
	}
	return response{StatusCode: status, Headers: map[string]string{"Content-Type": "application/json"}, Body: string(body)}
}
