// snsfanout is one of several subscribers of a topic: it handles each message
// once. The others do so too, in their own way: lock names begin with the name of
// the function, so that subscribers can share a lock table and never see each
// other. middleware.Namespace would make several functions one subscriber.
//
// Event source: a subscription of the function to an SNS topic, with a dead-letter
// queue on the subscription and another one, or a failure destination, on the
// function.
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
