// gin takes payments with a Gin engine. The lock is around the adapter; see
// ../nethttp.
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
	ginadapter "github.com/awslabs/aws-lambda-go-api-proxy/gin"
	"github.com/gin-gonic/gin"

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
	return middleware.WithLock(key, ginadapter.NewV2(routes(charge)).ProxyWithContext, opts...)
}

func routes(charge func(ctx context.Context, order string) (string, error)) *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.POST("/payments", func(c *gin.Context) {
		var body struct{ Order string }
		if err := c.ShouldBindJSON(&body); err != nil {
			c.String(http.StatusBadRequest, "the body must be JSON")
			return
		}
		payment, err := charge(c.Request.Context(), body.Order)
		if err != nil {
			c.String(http.StatusServiceUnavailable, "try again")
			return
		}
		c.SetCookie("payment", payment, 0, "", "", false, false)
		c.JSON(http.StatusCreated, gin.H{"payment": payment, "order": body.Order})
	})
	engine.GET("/payments", func(c *gin.Context) {
		c.JSON(http.StatusOK, []string{})
	})
	return engine
}

// charge is where your own work goes.
func charge(ctx context.Context, order string) (string, error) {
	payment := rand.Text()
	slog.InfoContext(ctx, "customer charged", "order", order, "payment", payment)
	return payment, nil
}
