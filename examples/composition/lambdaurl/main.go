// lambdaurl takes payments with a net/http handler behind a Function URL. It
// locks what lambdaurl.Wrap returns and starts that with lambda.Start:
// lambdaurl.Start would leave no place for the lock. The lock is held until the
// last byte of the response has been read.
//
// Event source: a Function URL with InvokeMode RESPONSE_STREAM. Build with
// -tags lambda.norpc.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdaurl"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

type (
	request  = events.LambdaFunctionURLRequest
	response = events.LambdaFunctionURLStreamingResponse
)

func main() {
	lambda.Start(handler(charge))
}

// handler returns the function for Lambda. A request without an
// Idempotency-Key, such as a GET, needs no lock.
func handler(charge func(ctx context.Context, order string) (string, error), opts ...middleware.Option) func(context.Context, *request) (*response, error) {
	key := keyfuncs.Optional(keyfuncs.IdempotencyKey[request])
	return middleware.WithLock(key, lambdaurl.Wrap(routes(charge)), opts...)
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
