// schedule runs a job at scheduled times: once for each time, and never two
// runs at the same time. A run that starts while the previous one is in
// progress is skipped.
//
// Event source: a schedule of EventBridge Scheduler without a custom input, or
// an EventBridge rule. If a run may take longer than a minute, give the
// function a sufficient timeout and add middleware.Heartbeat(20*time.Second),
// so that the lock of a crashed process expires soon.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	lambda.Start(middleware.WithLock(keyfuncs.EventBridgeSchedule, handle, middleware.OnHeld(middleware.Skip)))
}

func handle(ctx context.Context, e events.EventBridgeEvent) error {
	// The scheduled time, not the current one: a late run reports on the same
	// day.
	day := e.Time.UTC().AddDate(0, 0, -1)
	if err := report(ctx, day); err != nil {
		return fmt.Errorf("report of %s: %w", day.Format(time.DateOnly), err)
	}
	return nil
}

// report is where your own work goes.
func report(ctx context.Context, day time.Time) error {
	slog.InfoContext(ctx, "report built", "day", day.Format(time.DateOnly))
	return nil
}
