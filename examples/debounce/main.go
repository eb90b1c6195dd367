// debounce rebuilds the search index of a customer after changes, whatever they
// are: at most once a minute for each customer, and after the last change at
// least once. A change that comes during a run or waits in the same batch needs
// no run of its own. One that comes within the minute after a run waits in the
// queue until it is over.
//
// Event source: an SQS standard queue with ReportBatchItemFailures on the event
// source mapping, a visibility timeout of six times the function's timeout, and
// a dead-letter queue with a maxReceiveCount of 20. With the option
// redelivery.SQS, a change comes back as soon as the minute is over.
package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	lambda.Start(middleware.EachSQSBody(byCustomer, handle,
		middleware.OnlyLatest(), middleware.HoldAtLeast(time.Minute)))
}

type change struct {
	Customer string `json:"customer"`
}

func byCustomer(_ context.Context, c change) (lock.Key, error) {
	if c.Customer == "" {
		return lock.Key{}, &lock.NoKeyError{Field: "customer", Reason: "is missing: every change has one"}
	}
	return lock.Key{Name: "customer/" + c.Customer}, nil
}

// handle is where your own work goes. It reads the customer as it is now, and
// nothing else from the change.
func handle(ctx context.Context, c change) error {
	slog.InfoContext(ctx, "index rebuilt", "customer", c.Customer)
	return nil
}
