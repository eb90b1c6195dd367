package otellock_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
	"github.com/lambdalock/lambdalock/telemetry/otellock"
)

// fixture is a store that fails on purpose, and what is reported of it.
type fixture struct {
	store    *fault.Scripted
	reader   *sdkmetric.ManualReader
	exporter *tracetest.InMemoryExporter
	traces   *sdktrace.TracerProvider
	options  otellock.Options
}

func newFixture() *fixture {
	f := &fixture{store: fault.NewScripted(memstore.New()), reader: sdkmetric.NewManualReader(), exporter: tracetest.NewInMemoryExporter()}
	f.traces = sdktrace.NewTracerProvider(sdktrace.WithSyncer(f.exporter))
	f.options = otellock.Options{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(f.reader)), TracerProvider: f.traces}
	return f
}

func (f *fixture) with(more ...middleware.Option) []middleware.Option {
	return append([]middleware.Option{
		middleware.Store(f.store), middleware.Namespace("shop"), middleware.Logger(slog.New(slog.DiscardHandler)), otellock.Observe(&f.options),
	}, more...)
}

// invocation begins the span of an invocation, as otellambda does.
func (f *fixture) invocation(ctx context.Context) (context.Context, trace.Span) {
	return f.traces.Tracer("test").Start(ctx, "invocation")
}

// spans returns the spans that have ended since the last call, by their name.
func (f *fixture) spans() map[string]tracetest.SpanStub {
	defer f.exporter.Reset()
	all := map[string]tracetest.SpanStub{}
	for _, s := range f.exporter.GetSpans() {
		all[s.Name] = s
	}
	return all
}

// measured returns the counts of lambdalock.events by their attributes, and how
// many values the histograms have by their name.
func measured(t *testing.T, reader sdkmetric.Reader) (events map[attribute.Set]int, values map[string]int) {
	t.Helper()
	var all metricdata.ResourceMetrics
	expect.Must(t, reader.Collect(context.Background(), &all))
	events, values = map[attribute.Set]int{}, map[string]int{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					events[p.Attributes] += int(p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					values[m.Name] += int(p.Count)
				}
			}
		}
	}
	return events, values
}

// die acquires a name for 10 s, and does not get it released within 2 s.
func (f *fixture) die(t *testing.T, name string) (run trace.SpanContext) {
	t.Helper()
	ctx, span := f.invocation(t.Context())
	defer span.End()
	f.store.Always(fault.Release, fault.DropBefore)
	defer f.store.Always(fault.Release, fault.None)
	h := middleware.WithLock(keyfuncs.Static(name), func(context.Context) error { return nil },
		f.with(middleware.Engine(func(o *lock.Options) { o.Lease, o.CompleteWithin = lock.FixedLease(10*time.Second), time.Millisecond }))...)
	_ = h(ctx)
	f.spans()
	if _, values := measured(t, f.reader); values["lambdalock.acquire.duration"] != 1 {
		t.Fatal("nothing was acquired")
	}
	return span.SpanContext()
}

// TestAfterTheDeadline shows that what happens after the context has ended is
// reported too.
func TestAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_ = middleware.WithLock(keyfuncs.Static("n"), func(context.Context) error { time.Sleep(6 * time.Second); return nil }, f.with()...)(ctx)
		if _, values := measured(t, f.reader); values["lambdalock.hold.duration"] != 1 || f.spans()["lambdalock release"].Name == "" {
			t.Errorf("measured %v", values)
		}
	})
}

// TestDefaults shows that nil options report to the global providers, which
// may be set later or not at all.
func TestDefaults(t *testing.T) {
	t.Parallel()
	for _, o := range []*otellock.Options{nil, {}} {
		h := middleware.WithLock(keyfuncs.Static("n"), func(context.Context) error { return nil }, middleware.Store(memstore.New()), otellock.Observe(o))
		expect.OK(t, h(t.Context()))
	}
}

// TestProviderThatPanics shows that a panic of a span processor is one of an
// observer: it reaches the caller, and the lock is released.
func TestProviderThatPanics(t *testing.T) { // F48
	t.Parallel()
	f := newFixture()
	f.traces.RegisterSpanProcessor(panicking{sdktrace.NewSimpleSpanProcessor(f.exporter)})
	ran := false
	h := middleware.WithLock(keyfuncs.Static("n"), func(context.Context) error { ran = true; return nil }, f.with()...)
	func() {
		defer func() {
			if p := recover(); p != "processor" {
				t.Errorf("recovered %v", p)
			}
		}()
		_ = h(t.Context())
	}()
	again := middleware.WithLock(keyfuncs.Static("n"), func(context.Context) error { return nil }, middleware.Store(f.store), middleware.Namespace("shop"))
	if err := again(t.Context()); err != nil || ran {
		t.Errorf("afterwards: %v; the handler ran: %v", err, ran)
	}
}

type panicking struct{ sdktrace.SpanProcessor }

func (panicking) OnEnd(sdktrace.ReadOnlySpan) { panic("processor") }

func batch(ids ...string) (e events.SQSEvent) {
	for _, id := range ids {
		e.Records = append(e.Records, events.SQSMessage{MessageId: id, EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-west-1:123456789012:q"})
	}
	return e
}
