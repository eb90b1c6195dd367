// sqsorders takes orders from a queue in batches. It handles one order of a
// customer at a time and each order once, and different customers in parallel.
// Only the messages that failed come back.
//
// Event source: an SQS standard queue with ReportBatchItemFailures on the event
// source mapping (without it, Lambda deletes failed messages too), a visibility
// timeout of six times the function's timeout, and a dead-letter queue with a
// maxReceiveCount of at least 5.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	// EachSQSBody adds the message id as the Event. It is remembered for 4 days,
	// as long as a queue keeps messages by default. If yours keeps them longer,
	// add middleware.Remember.
	lambda.Start(middleware.EachSQSBody(byCustomer, handle))
}

type order struct {
	ID       json.Number `json:"order"`
	Customer string      `json:"customer"`
	Items    []item      `json:"items"`
}

type item struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
}

func byCustomer(_ context.Context, o order) (lock.Key, error) {
	if o.Customer == "" {
		return lock.Key{}, &lock.NoKeyError{Field: "customer", Reason: "is missing: every order has one"}
	}
	return lock.Key{Name: "customer/" + o.Customer}, nil
}

// handle is where your own work goes.
func handle(ctx context.Context, o order) error {
	if o.ID == "" || len(o.Items) == 0 {
		return errors.New("the order has no number or no items")
	}
	for _, i := range o.Items {
		if i.Quantity < 1 {
			return errors.New("order " + o.ID.String() + ": " + i.SKU + " has no quantity")
		}
	}
	slog.InfoContext(ctx, "order accepted", "order", o.ID, "items", len(o.Items))
	return nil
}
