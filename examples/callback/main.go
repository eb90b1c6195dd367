// callback asks a partner to ship an order, and completes the order when the
// partner calls back. In between the lock stays held, for up to a day, and
// duplicates of the request fail. A callback that comes twice finds the order
// completed. If none comes, the order can be requested again a day later.
//
// Event source: asynchronous invocations by the shop. On success, a destination
// of the function sends its result to the partner's queue, so that the partner
// gets the handle only after the handler has succeeded. The partner returns the
// result unchanged, by another asynchronous invocation.
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
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

// shipment is the event of both handlers, and the result of the first one.
type shipment struct {
	Order string      `json:"order"`
	Lock  lock.Ticket `json:"lock,omitzero"` // of a callback
}

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	requested := middleware.WithLock(byOrder, request)
	calledBack := middleware.Resume(func(s shipment) lock.Ticket { return s.Lock }, confirm)
	lambda.Start(func(ctx context.Context, s shipment) (*shipment, error) {
		if s.Lock == (lock.Ticket{}) {
			return requested(ctx, s)
		}
		return calledBack(ctx, s)
	})
}

func byOrder(_ context.Context, s shipment) (lock.Key, error) {
	if s.Order == "" {
		return lock.Key{}, &lock.NoKeyError{Field: "order", Reason: "is missing"}
	}
	return lock.Key{Name: s.Order, Event: s.Order}, nil
}

// request is where your own work goes. It hands the lock over last: if it
// failed afterwards, the lock would be released.
func request(ctx context.Context, s shipment) (*shipment, error) {
	slog.InfoContext(ctx, "shipment requested", "order", s.Order)
	handle, err := lock.HandOver(ctx, 24*time.Hour)
	return &shipment{Order: s.Order, Lock: handle}, err
}

// confirm is where your own work goes. The order is completed when it succeeds.
// If it fails, the lock stays held for the next attempt.
func confirm(ctx context.Context, s shipment) (*shipment, error) {
	slog.InfoContext(ctx, "shipment confirmed", "order", s.Order)
	return nil, nil
}
