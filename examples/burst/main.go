// burst rebuilds the search index of a customer after changes on a stream. All
// changes of a customer in a batch are one run, and so are those that come in
// other batches while it lasts: they are acknowledged, and the handler runs
// once more. Different customers are handled in parallel.
//
// Event source: a Kinesis stream with ReportBatchItemFailures,
// BisectBatchOnFunctionError, MaximumRetryAttempts, MaximumRecordAgeInSeconds
// and a failure destination on the event source mapping. With a
// ParallelizationFactor, or several functions with the same namespace, batches
// of a customer meet.
package main

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	byCustomer := keyfuncs.ByField(func(c change) string { return c.Customer })
	lambda.Start(middleware.EachKinesisBody(byCustomer, rebuild, middleware.OnlyLatest(), middleware.OrderPerName()))
}

type change struct {
	Customer string `json:"customer"`
}

// rebuild is where your own work goes. It reads the customer as it is now, and
// nothing else from the change.
func rebuild(ctx context.Context, c change) error {
	slog.InfoContext(ctx, "index rebuilt", "customer", c.Customer)
	return nil
}
