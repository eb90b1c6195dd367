package otellock

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/lambdalock/lambdalock/lock"
)

// meters are the instruments. All are synchronous, because Lambda freezes the
// process between invocations.
type meters struct {
	acquires, waits, holds metric.Float64Histogram
	events                 metric.Int64Counter
}

func newMeters(m metric.Meter) *meters {
	return &meters{
		acquires: histogram(m, "lambdalock.acquire.duration", "How long a claim took, with its wait."),
		waits:    histogram(m, "lambdalock.wait.duration", "How long a claim waited that did wait."),
		holds:    histogram(m, "lambdalock.hold.duration", "How long a lock was held that has ended."),
		events:   counter(m, "lambdalock.events", "Outcomes of claims, locks and records."),
	}
}

// bounds are those that OpenTelemetry advises for durations in seconds, and
// more, up to the longest invocation.
// https://opentelemetry.io/docs/specs/semconv/http/http-metrics/
var bounds = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 300, 900}

func histogram(m metric.Meter, name, description string) metric.Float64Histogram {
	h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(bounds...))
	if err != nil {
		otel.Handle(err)
		return noop.Float64Histogram{}
	}
	return h
}

func counter(m metric.Meter, name, description string) metric.Int64Counter {
	c, err := m.Int64Counter(name, metric.WithUnit("{event}"), metric.WithDescription(description))
	if err != nil {
		otel.Handle(err)
		return noop.Int64Counter{}
	}
	return c
}

func (m *meters) record(ctx context.Context, o lock.Observation, attributes attribute.Set) {
	with := metric.WithAttributeSet(attributes)
	m.events.Add(ctx, int64(max(o.Records, 1)), with)
	if o.Op == "acquire" {
		m.acquires.Record(ctx, o.Duration.Seconds(), with)
	}
	if o.Waited > 0 {
		m.waits.Record(ctx, o.Waited.Seconds(), with)
	}
	if o.Op == "complete" || o.Op == "release" { // whatever the outcome: those that outlived their lease took longest
		m.holds.Record(ctx, o.HeldFor.Seconds(), with)
	}
}
