// schedule runs a job that is due at certain times: once for each time, and never
// twice at once. A run that finds the one before still at work is skipped.
//
// Event source: a schedule of EventBridge Scheduler without an input of its own,
// or an EventBridge rule. If a run may last longer than a minute, give the
// function a timeout to match and add middleware.Heartbeat(20*time.Second), so
// that the lock of a process that died is soon free.
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
	lambda.Start(middleware.WithLock(keyfuncs.Schedule, handle, middleware.OnHeld(middleware.Skip)))
}

func handle(ctx context.Context, e events.EventBridgeEvent) error {
	// The time it was due, not the time it is: a late run reports on the same day.
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
