// limit calls the API of a partner, with at most three calls per partner at the
// same time, whichever functions make them. The outer lock handles each event
// once; the limited inner one counts the calls. A call that finds three under
// way waits for one of them to end.
//
// If only this function calls, and there is only one partner, the function's
// reserved concurrency is simpler:
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
//
// Event source: an EventBridge rule, with a dead-letter queue on the rule and a
// failure destination on the function, whose timeout is longer than the wait of
// 20 s. Functions that share the limit need the same namespace.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	limited := middleware.WithLock(byPartner, handle,
		middleware.Limit(3), middleware.OnHeld(middleware.Wait(20*time.Second)))
	lambda.Start(middleware.WithLock(keyfuncs.Prefix(keyfuncs.EventBridgeEvent, "event"), limited))
}

type shipment struct {
	Order   json.Number `json:"order"`
	Partner string      `json:"partner"`
}

// byPartner sets no Event, because a limited name cannot tell duplicates apart.
func byPartner(_ context.Context, e events.EventBridgeEvent) (lock.Key, error) {
	var s shipment
	if err := json.Unmarshal(e.Detail, &s); err != nil {
		return lock.Key{}, &lock.NoKeyError{Field: "detail", Reason: "is not a shipment", Err: err}
	}
	if s.Partner == "" {
		return lock.Key{}, &lock.NoKeyError{Field: "detail.partner", Reason: "is missing"}
	}
	return lock.Key{Name: "partner/" + s.Partner}, nil
}

func handle(ctx context.Context, e events.EventBridgeEvent) error {
	var s shipment
	if err := json.Unmarshal(e.Detail, &s); err != nil {
		return fmt.Errorf("shipment in event %s: %w", e.ID, err)
	}
	return call(ctx, s)
}

// call is where your own work goes. It must end when its context does.
func call(ctx context.Context, s shipment) error {
	slog.InfoContext(ctx, "partner called", "partner", s.Partner, "order", s.Order)
	return nil
}
