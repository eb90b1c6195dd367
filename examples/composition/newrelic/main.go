// newrelic traces a handler with New Relic and locks its event. The tracer is
// outside, so a duplicate that is skipped has a transaction too.
//
// Event source: an EventBridge rule. The function needs the New Relic
// extension, or the log ingestion function.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/newrelic/go-agent/v3/integrations/nrlambda"
	"github.com/newrelic/go-agent/v3/newrelic"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

func main() {
	app, err := newrelic.NewApplication(nrlambda.ConfigOption())
	if err != nil {
		slog.Error("start New Relic", "error", err)
		os.Exit(1)
	}
	lambda.Start(tracerOutside(handle, app))
}

// tracerOutside gives every invocation a transaction, also one that is skipped
// or refused.
func tracerOutside(handle func(context.Context, events.EventBridgeEvent) error, app *newrelic.Application, opts ...middleware.Option) lambda.Handler {
	return nrlambda.Wrap(middleware.WithLock(keyfuncs.EventBridgeEvent, handle, opts...), app)
}

// lockOutside gives only those invocations a transaction that run the handler.
func lockOutside(handle func(context.Context, events.EventBridgeEvent) error, app *newrelic.Application, opts ...middleware.Option) lambda.Handler {
	return middleware.WithLock(keyfuncs.EventBridgeEvent, nrlambda.Wrap(handle, app), opts...)
}

// handle is where your own work goes.
func handle(ctx context.Context, e events.EventBridgeEvent) error {
	newrelic.FromContext(ctx).AddAttribute("order", e.ID)
	slog.InfoContext(ctx, "order placed", "event", e.ID)
	return nil
}
