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
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	limited := middleware.WithLimit(partnerOf, 3, call, middleware.OnHeld(middleware.Wait(20*time.Second)))
	byEvent := middleware.RecordKey[shipment](keyfuncs.Prefix(keyfuncs.EventBridgeEvent, "event"))
	lambda.Start(middleware.WithEventBridgeDetail(byEvent, limited))
}

type shipment struct {
	Order   json.Number `json:"order"`
	Partner string      `json:"partner"`
}

// partnerOf returns the name that three calls may hold. A shipment without a
// partner is refused, because the name is empty.
func partnerOf(s shipment) string {
	if s.Partner == "" {
		return ""
	}
	return "partner/" + s.Partner
}

// call is where your own work goes. It must end when its context does.
func call(ctx context.Context, s shipment) error {
	slog.InfoContext(ctx, "partner called", "partner", s.Partner, "order", s.Order)
	return nil
}
