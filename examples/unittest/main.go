// unittest sends receipts. Its handler_test.go shows how to test a wrapped
// handler without AWS, with locks in memory and fake time.
//
// Event source: an EventBridge rule for OrderPlaced, with a dead-letter queue
// on the rule and a failure destination on the function.
package main

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	lambda.Start(newHandler(send))
}

// send is where your own work goes.
func send(ctx context.Context, r receipt) error {
	slog.InfoContext(ctx, "receipt sent", "order", r.Order)
	return nil
}
