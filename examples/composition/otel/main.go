// otel traces a handler with OpenTelemetry and locks its event. The tracer is
// outside, so a duplicate that is skipped has a span too. Package otellock adds
// the spans of the lock, and its metrics.
//
// Event source: an EventBridge rule. The exporter that your collector needs
// takes the place of the one that prints.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"go.opentelemetry.io/contrib/instrumentation/github.com/aws/aws-lambda-go/otellambda"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/telemetry/otellock"
)

func main() {
	exporter, err := stdouttrace.New()
	if err != nil {
		slog.Error("open the exporter", "error", err)
		os.Exit(1)
	}
	traced := tracerOutside(handle, sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter)))
	lambda.StartWithOptions(traced, lambda.WithUseNumber(true)) // otellambda would round large numbers
}

// tracerOutside gives every invocation a span, also one that is skipped or
// refused.
func tracerOutside(handle func(context.Context, events.EventBridgeEvent) error, tp *sdktrace.TracerProvider, opts ...middleware.Option) any {
	locked := middleware.WithLock(keyfuncs.EventBridgeEvent, handle, append(opts, otellock.Observe(&otellock.Options{TracerProvider: tp}))...)
	return otellambda.InstrumentHandler(locked, otellambda.WithTracerProvider(tp), otellambda.WithFlusher(tp))
}

// lockOutside gives only those invocations a span that run the handler. Those
// of the lock are traces of their own.
func lockOutside(handle func(context.Context, events.EventBridgeEvent) error, tp *sdktrace.TracerProvider, opts ...middleware.Option) any {
	traced := otellambda.InstrumentHandler(handle, otellambda.WithTracerProvider(tp), otellambda.WithFlusher(tp))
	return middleware.WithLock(keyfuncs.EventBridgeEvent, traced, append(opts, otellock.Observe(&otellock.Options{TracerProvider: tp}))...)
}

// records gives every invocation a span, and every record of its batch one
// below it, also a record that is skipped.
func records(handle func(context.Context, events.SQSMessage) error, tp *sdktrace.TracerProvider, opts ...middleware.Option) any {
	tracer := tp.Tracer("orders")
	span := middleware.Around(func(ctx context.Context, m events.SQSMessage, next func(context.Context) error) error {
		ctx, span := tracer.Start(ctx, "order", trace.WithAttributes(attribute.String("message", m.MessageId)))
		defer span.End()
		err := next(ctx)
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		return err
	})
	each := middleware.EachSQSMessage(keyfuncs.SQSMessage, handle, append(opts, span, otellock.Observe(&otellock.Options{TracerProvider: tp}))...)
	return otellambda.InstrumentHandler(each, otellambda.WithTracerProvider(tp), otellambda.WithFlusher(tp))
}

// handle is where your own work goes.
func handle(ctx context.Context, e events.EventBridgeEvent) error {
	slog.InfoContext(ctx, "order placed", "event", e.ID, "trace", trace.SpanContextFromContext(ctx).TraceID())
	return nil
}
