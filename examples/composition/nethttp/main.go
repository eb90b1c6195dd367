// nethttp takes payments with a net/http handler. The adapter turns a request
// of API Gateway into one for the handler; the lock is around the adapter, so
// it has the request as API Gateway sent it.
//
// Event source: an API Gateway HTTP API with payload format 2.0.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/awslabs/aws-lambda-go-api-proxy/httpadapter"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

type (
	request  = events.APIGatewayV2HTTPRequest
	response = events.APIGatewayV2HTTPResponse
)

func main() {
	lambda.Start(handler(charge))
}

// handler returns the function for Lambda. A request without an
// Idempotency-Key, such as a GET, needs no lock.
func handler(charge func(ctx context.Context, order string) (string, error), opts ...middleware.Option) func(context.Context, request) (response, error) {
	key := keyfuncs.Optional(keyfuncs.IdempotencyKey[request])
	return middleware.WithLock(key, httpadapter.NewV2(routes(charge)).ProxyWithContext, opts...)
}

func routes(charge func(ctx context.Context, order string) (string, error)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /payments", func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Order string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, "the body must be JSON", http.StatusBadRequest)
			return
		}
		payment, err := charge(r.Context(), body.Order)
		if err != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable)
			return
		}
		http.SetCookie(w, &http.Cookie{Name: "payment", Value: payment})
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]string{"payment": payment, "order": body.Order})
	})
	mux.HandleFunc("GET /payments", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("[]"))
	})
	return mux
}

// charge is where your own work goes.
func charge(ctx context.Context, order string) (string, error) {
	payment := rand.Text()
	slog.InfoContext(ctx, "customer charged", "order", order, "payment", payment)
	return payment, nil
}
