// Package otellock reports what happens to locks through the API of
// OpenTelemetry, as metrics and as spans:
//
//	locked := middleware.WithLock(keyfuncs.S3Object, handle, otellock.Observe(nil))
//	lambda.Start(otellambda.InstrumentHandler(locked))
//
// # Metrics
//
// The histograms are in seconds and have a value for each lock:
//
//	lambdalock.acquire.duration  how long a claim took, with its wait
//	lambdalock.wait.duration     how long a claim waited that did wait
//	lambdalock.hold.duration     how long a lock was held that has ended
//
// The counter lambdalock.events counts the outcomes of packages lock and
// middleware, and for OutcomeNotBegun the records. All of them have attributes:
//
//	lambdalock.outcome    the outcome, such as acquired, held or lost
//	lambdalock.namespace  of the lock
//	lambdalock.store      such as "DynamoDB table orders-locks"
//	error.type            of a failure: what Lambda calls errorType
//
// Two outcomes are told apart: a lock that is released and its event completed
// is completed, and one that is held for the same event is in_progress.
//
// Lambda freezes a process after its answer. So flush the providers before
// that, with the option middleware.Metrics: the outcomes of an invocation that
// the platform kills, or of a process that crashes, are lost with what was not
// exported. Otherwise the counter is as exact as [middleware.Metrics].
//
// # Spans
//
// Every operation that an observation reports has a span, with the times of the
// operation: "lambdalock acquire", "lambdalock renew", "lambdalock complete" or
// "lambdalock release". It is below the span in the context of the invocation,
// or in that of the record. Its attributes are those of the metrics and
//
//	lambdalock.key       the digest of the name, as in log lines
//	lambdalock.fence     of the lock that was acquired, or that is in the way
//	lambdalock.requests  to the store
//	lambdalock.holder    of the lock that is in the way, or that was taken over
//	lambdalock.tenant    of the invocation
//
// The status is Error if the outcome is a failure; a refusal is not a failure.
//
// Holders describe themselves with the ids of their trace and span, if these
// are sampled. The span of a refused delivery, and that of a takeover, links to
// the span of the holder: to the run that is doing the work, or was.
package otellock

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// Options changes what [Observe] reports to. The zero value and a nil pointer
// mean the defaults.
type Options struct {
	MeterProvider  metric.MeterProvider // nil: the global one, also if it is set later
	TracerProvider trace.TracerProvider // the same
}

// Observe returns the option that reports the locks of a wrapper. If wrappers
// run inside each other, give it to all of them: each reports its own. A panic
// of a provider is one of an observer; see [middleware.Observe].
func Observe(o *Options) middleware.Option {
	var given Options
	if o != nil {
		given = *o
	}
	if given.MeterProvider == nil {
		given.MeterProvider = otel.GetMeterProvider()
	}
	if given.TracerProvider == nil {
		given.TracerProvider = otel.GetTracerProvider()
	}
	const scope = "github.com/lambdalock/lambdalock/telemetry/otellock"
	m, t := newMeters(given.MeterProvider.Meter(scope)), tracer{given.TracerProvider.Tracer(scope)}
	return middleware.Group(middleware.Holder(describe), middleware.Observe(func(ctx context.Context, o lock.Observation) {
		attributes := attributesOf(o)
		m.record(ctx, o, attributes)
		t.span(ctx, o, attributes)
	}))
}
