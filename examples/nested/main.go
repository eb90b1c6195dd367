// nested uses two locks. The outer lock detects duplicates of an event for a
// week. A lock name remembers at least its last eight completed events, which
// is too few if a customer has many orders and duplicates arrive late. So here
// each event has its own name. The inner lock handles one order of a customer
// at a time.
//
// Event source: an EventBridge rule, with a dead-letter queue on the rule and a
// failure destination on the function, whose timeout is longer than the wait of
// 5 s. Each event costs four writes instead of two.
package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	one := middleware.WithLock(byCustomer, handle, middleware.OnHeld(middleware.Wait(5*time.Second)))
	// The prefix separates the names of the two locks.
	byEvent := middleware.RecordKey[order](keyfuncs.Prefix(keyfuncs.EventBridgeEvent, "event"))
	once := middleware.WithEventBridgeDetail(byEvent, one, middleware.Remember(7*24*time.Hour))
	lambda.Start(once)
}

type order struct {
	Number   json.Number `json:"order"`
	Customer string      `json:"customer"`
}

// byCustomer sets no Event: the outer lock detects duplicates.
func byCustomer(_ context.Context, o order) (lock.Key, error) {
	if o.Customer == "" {
		return lock.Key{}, &lock.NoKeyError{Field: "customer", Reason: "is missing"}
	}
	return lock.Key{Name: "customer/" + o.Customer}, nil
}

// handle is where your own work goes.
func handle(ctx context.Context, o order) error {
	slog.InfoContext(ctx, "order booked", "order", o.Number)
	return nil
}
