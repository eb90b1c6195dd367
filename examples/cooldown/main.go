// cooldown mails a customer a link to reset the password, at most once a
// minute, however often the button is pressed. A request within the minute gets
// status 429. One that comes while a mail is being sent does, too.
//
// Event source: an API Gateway HTTP API with payload format 2.0.
package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

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
	byCustomer := keyfuncs.HTTPBody[request](keyfuncs.ByField(func(r reset) string { return r.Customer }))
	later := response{StatusCode: http.StatusTooManyRequests, Headers: map[string]string{"Retry-After": "60"}}
	lambda.Start(middleware.WithLock(byCustomer, handle,
		middleware.HoldAtLeast(time.Minute), middleware.OnHeld(middleware.Respond(later))))
}

type reset struct {
	Customer string `json:"customer"`
}

// handle is where your own work goes: the request to the mail server.
func handle(ctx context.Context, r request) (response, error) {
	var asked reset
	if err := json.Unmarshal([]byte(r.Body), &asked); err != nil {
		return response{StatusCode: http.StatusBadRequest}, nil
	}
	slog.InfoContext(ctx, "link sent", "customer", asked.Customer)
	return response{StatusCode: http.StatusAccepted}, nil
}
