// echo takes payments with an Echo instance. The lock is around the adapter;
// see ../nethttp.
//
// Event source: an API Gateway HTTP API with payload format 2.0.
package main

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	echoadapter "github.com/awslabs/aws-lambda-go-api-proxy/echo"
	"github.com/labstack/echo/v4"

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
	return middleware.WithLock(key, echoadapter.NewV2(routes(charge)).ProxyWithContext, opts...)
}

func routes(charge func(ctx context.Context, order string) (string, error)) *echo.Echo {
	e := echo.New()
	e.POST("/payments", func(c echo.Context) error {
		var body struct{ Order string }
		if err := c.Bind(&body); err != nil {
			return c.String(http.StatusBadRequest, "the body must be JSON")
		}
		payment, err := charge(c.Request().Context(), body.Order)
		if err != nil {
			return c.String(http.StatusServiceUnavailable, "try again")
		}
		c.SetCookie(&http.Cookie{Name: "payment", Value: payment})
		return c.JSON(http.StatusCreated, map[string]string{"payment": payment, "order": body.Order})
	})
	e.GET("/payments", func(c echo.Context) error {
		return c.JSON(http.StatusOK, []string{})
	})
	return e
}

// charge is where your own work goes.
func charge(ctx context.Context, order string) (string, error) {
	payment := rand.Text()
	slog.InfoContext(ctx, "customer charged", "order", order, "payment", payment)
	return payment, nil
}
