// datadog traces a handler with Datadog and locks its event. The tracer is
// outside, so a duplicate that is skipped has a span and counts as an
// invocation too.
//
// Event source: an EventBridge rule. The function needs the Datadog extension,
// or DD_API_KEY.
package main

import (
	"context"
	"log/slog"

	ddlambda "github.com/DataDog/datadog-lambda-go"
	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

func main() {
	lambda.Start(tracerOutside(handle, nil))
}

// tracerOutside gives every invocation a span, also one that is skipped or
// refused.
func tracerOutside(handle func(context.Context, events.EventBridgeEvent) error, cfg *ddlambda.Config, opts ...middleware.Option) any {
	return ddlambda.WrapFunction(middleware.WithLock(keyfuncs.EventBridgeEvent, handle, opts...), cfg)
}

// lockOutside gives only those invocations a span that run the handler.
func lockOutside(handle func(context.Context, events.EventBridgeEvent) error, cfg *ddlambda.Config, opts ...middleware.Option) any {
	return middleware.WithLock(keyfuncs.EventBridgeEvent, ddlambda.WrapFunction(handle, cfg), opts...)
}

// handle is where your own work goes.
func handle(ctx context.Context, e events.EventBridgeEvent) error {
	slog.InfoContext(ctx, "order placed", "event", e.ID)
	return nil
}
