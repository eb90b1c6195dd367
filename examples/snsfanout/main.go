// snsfanout is one of several subscribers to a topic, and handles each message
// once. The others do the same independently: lock names begin with the name of
// the function, so subscribers can share a lock table without affecting each
// other. With the same middleware.Namespace, several functions would be one
// subscriber.
//
// Event source: a subscription of the function to an SNS topic. The
// subscription has a dead-letter queue, and the function has another one or a
// failure destination.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	lambda.Start(middleware.EachSNSBody(middleware.RecordKey[notice](keyfuncs.SNSRecord), handle))
}

type notice struct {
	Order json.Number `json:"order"`
}

// handle is where your own work goes.
func handle(ctx context.Context, n notice) error {
	if n.Order == "" {
		return errors.New("the message names no order")
	}
	slog.InfoContext(ctx, "customer notified", "order", n.Order, "subscriber", lambdacontext.FunctionName)
	return nil
}
