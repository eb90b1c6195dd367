package otellock_test

import (
	"context"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/telemetry/otellock"
)

// The metrics are exported before Lambda freezes the process.
func ExampleObserve() {
	var exporter metric.Exporter // that your collector needs
	meters := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(exporter)))
	otel.SetMeterProvider(meters)

	handle := func(ctx context.Context, e events.S3Event) error { return nil }
	flush := func(ctx context.Context, _ middleware.Totals) {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // for a collector that is down
		defer cancel()
		if err := meters.ForceFlush(ctx); err != nil {
			otel.Handle(err)
		}
	}
	lambda.Start(middleware.WithLock(keyfuncs.S3Object, handle, otellock.Observe(nil), middleware.Metrics(flush)))
}
