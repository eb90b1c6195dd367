// latest publishes the price list of a shop after changes, whatever they are.
// Changes that come during a run are acknowledged, and the handler runs once
// more for all of them.
//
// Event source: an EventBridge rule, with a dead-letter queue on the rule and a
// failure destination on the function.
package main

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	byShop := keyfuncs.EventBridgeDetail(keyfuncs.ByField(func(c change) string { return c.Shop }))
	lambda.Start(middleware.Latest(keyfuncs.EventFrom(byShop, keyfuncs.EventBridgeEvent), publish))
}

type change struct {
	Shop string `json:"shop"`
}

// publish is where your own work goes. It reads the prices as they are now, and
// nothing from the change but the shop.
func publish(ctx context.Context, e events.EventBridgeEvent) error {
	var c change
	if err := json.Unmarshal(e.Detail, &c); err != nil {
		return err
	}
	slog.InfoContext(ctx, "prices published", "shop", c.Shop)
	return nil
}
