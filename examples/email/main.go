// email sends the confirmation of an order at most once. An e-mail cannot be
// taken back, and no one can ask whether it was sent: so if the function dies
// while it sends one, the order counts as confirmed. The price is the e-mail
// that is lost if it died before.
//
// Event source: an SQS standard queue with ReportBatchItemFailures on the event
// source mapping, a visibility timeout of six times the function's timeout, and
// a dead-letter queue with a maxReceiveCount of at least 5. An error that the
// mail server returns is a known end: the message comes back, and is sent.
package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	lambda.Start(middleware.EachSQSBody(byOrder, confirm, middleware.OnInterrupted(middleware.Skip)))
}

type order struct {
	ID string `json:"order"`
	To string `json:"to"`
}

func byOrder(_ context.Context, o order) (lock.Key, error) {
	if o.ID == "" {
		return lock.Key{}, &lock.NoKeyError{Field: "order", Reason: "is missing: every order has one"}
	}
	return lock.Key{Name: "confirmation/" + o.ID, Event: o.ID}, nil
}

// confirm is where your own work goes: the request to the mail server. If that
// has no answer, return middleware.Unknown.
func confirm(ctx context.Context, o order) error {
	if o.To == "" {
		return errors.New("the order has no address")
	}
	slog.InfoContext(ctx, "mail sent", "order", o.ID, "to", o.To)
	return nil
}
