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
	"fmt"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	lambda.Start(middleware.EachSNSRecord(keyfuncs.SNSRecord, handle))
}

type notice struct {
	Order json.Number `json:"order"`
}

func handle(ctx context.Context, r events.SNSEventRecord) error {
	var n notice
	if err := json.Unmarshal([]byte(r.SNS.Message), &n); err != nil {
		return fmt.Errorf("message %s: %w", r.SNS.MessageID, err)
	}
	return notify(ctx, n)
}

// notify is where your own work goes.
func notify(ctx context.Context, n notice) error {
	if n.Order == "" {
		return errors.New("the message names no order")
	}
	slog.InfoContext(ctx, "customer notified", "order", n.Order, "subscriber", lambdacontext.FunctionName)
	return nil
}
