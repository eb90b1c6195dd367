package middleware_test

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestCORSOutside shows that a function around the wrapped handler, as GUIDE.md
// has it, puts its headers on every answer of the wrapper.
func TestCORSOutside(t *testing.T) {
	t.Parallel()
	type handler = func(context.Context, restEvent) (events.APIGatewayProxyResponse, error)
	const origin = "Access-Control-Allow-Origin"
	withCORS := func(next handler) handler {
		return func(ctx context.Context, r restEvent) (events.APIGatewayProxyResponse, error) {
			out, err := next(ctx, r)
			if err != nil {
				return out, err
			}
			if out.Headers == nil {
				out.Headers = map[string]string{}
			}
			out.Headers[origin] = "https://shop.example.com"
			return out, nil
		}
	}
	var h handler
	request := func(method, key, path string) restEvent {
		e := restEvent{HTTPMethod: method, Path: path, Headers: map[string]string{}}
		if key != "" {
			e.Headers["idempotency-key"] = key
		}
		e.RequestContext.APIID = "api"
		return e
	}
	var statuses []int
	call := func(e restEvent) {
		out, err := h(t.Context(), e)
		if statuses = append(statuses, out.StatusCode); err != nil || out.Headers[origin] == "" {
			t.Errorf("%+v, %v", out, err)
		}
	}
	h = withCORS(middleware.WithLock(keyfuncs.IdempotencyKey[restEvent], func(context.Context, restEvent) (events.APIGatewayProxyResponse, error) {
		if len(statuses) == 2 {
			call(request("POST", "k", "/pay")) // while it is in progress
		}
		return events.APIGatewayProxyResponse{StatusCode: 201, Headers: map[string]string{"X": "y"}}, nil
	}, newFixture().options()...))
	for _, e := range []restEvent{
		request("OPTIONS", "", "/pay"), request("POST", "", "/pay"), request("POST", "k", "/pay"), request("POST", "k", "/pay"), request("POST", "k", "/other"),
	} {
		call(e)
	}
	if want := []int{201, http.StatusBadRequest, http.StatusConflict, 201, 201, http.StatusUnprocessableEntity}; !slices.Equal(statuses, want) {
		t.Errorf("%d, want %d", statuses, want)
	}
}
