package otellock_test

import (
	"context"
	"log/slog"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
	"github.com/lambdalock/lambdalock/telemetry/otellock"
)

// BenchmarkObserve prints what metrics and spans of one invocation cost beside
// the same invocation without them, and with providers that keep nothing.
func BenchmarkObserve(b *testing.B) {
	sdk := &otellock.Options{
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())),
		TracerProvider: sdktrace.NewTracerProvider(),
	}
	for name, opts := range map[string][]middleware.Option{
		"without":      nil,
		"no providers": {otellock.Observe(nil)},
		"SDK":          {otellock.Observe(sdk)},
	} {
		b.Run(name, func(b *testing.B) {
			h := middleware.WithLock(keyfuncs.Static("report"), func(context.Context) error { return nil },
				append(opts, middleware.Store(memstore.New()), middleware.Logger(slog.New(slog.DiscardHandler)))...)
			b.ReportAllocs()
			for b.Loop() {
				expect.Must(b, h(b.Context()))
			}
		})
	}
}
