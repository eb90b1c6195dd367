package otellock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
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
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
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

// attributes returns a span's attributes as text.
func attributes(s tracetest.SpanStub) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

// TestMetrics shows the attributes of the counter, and which outcomes the
// histograms measure.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(_ context.Context, m events.SQSMessage) error {
			time.Sleep(time.Second)
			if m.MessageId == "bad" {
				return fmt.Errorf("no stock: %w", errors.ErrUnsupported)
			}
			return nil
		}, f.with(middleware.Store(memstore.New()), middleware.Concurrency(1))...)
		_, _ = h(t.Context(), batch("good", "bad", "good", ""))
		events, values := measured(t, f.reader)
		at := func(outcome string, more ...attribute.KeyValue) attribute.Set {
			return attribute.NewSet(append(more, attribute.String("lambdalock.outcome", outcome),
				attribute.String("lambdalock.namespace", "shop"), attribute.String("lambdalock.store", "memory"))...)
		}
		want := map[attribute.Set]int{
			at("acquired"): 2, at("completed"): 1, at("released"): 1, at("already_completed"): 1,
			at("handler_failed", attribute.String("error.type", "wrapError")): 1,
			at("refused", attribute.String("error.type", "NoKeyError")):       1,
		}
		if !maps.Equal(events, want) {
			t.Errorf("counted %v", events)
		}
		if want := map[string]int{"lambdalock.acquire.duration": 3, "lambdalock.hold.duration": 2}; !maps.Equal(values, want) {
			t.Errorf("measured %v, want %v", values, want)
		}
	})
}

// TestDurations shows that durations are in seconds, and that the bounds of
// the histograms tell long ones apart.
func TestDurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		wait := f.with(middleware.OnHeld(middleware.Wait(time.Minute)), middleware.FixedLease(10*time.Second))
		f.die(t, "n")
		if err := middleware.WithLock(keyfuncs.Static("n"), func(context.Context) error { time.Sleep(2 * time.Second); return nil }, wait...)(t.Context()); err != nil {
			t.Fatal(err)
		}
		var all metricdata.ResourceMetrics
		if err := f.reader.Collect(t.Context(), &all); err != nil {
			t.Fatal(err)
		}
		want := map[string]float64{"lambdalock.acquire.duration": 8, "lambdalock.wait.duration": 8, "lambdalock.hold.duration": 2}
		for _, m := range all.ScopeMetrics[0].Metrics {
			h, ok := m.Data.(metricdata.Histogram[float64])
			if !ok {
				continue
			}
			sum := 0.0
			for _, p := range h.DataPoints {
				if sum += p.Sum; p.Bounds[len(p.Bounds)-1] != 900 {
					t.Errorf("%s has the bounds %v", m.Name, p.Bounds)
				}
			}
			if m.Unit != "s" || sum < want[m.Name] || sum > want[m.Name]+1 {
				t.Errorf("%s is %v %s", m.Name, sum, m.Unit)
			}
			delete(want, m.Name)
		}
		if len(want) > 0 {
			t.Errorf("not measured: %v", want)
		}
	})
}

// die acquires a name for 10 s, and does not get it released within 2 s.
func (f *fixture) die(t *testing.T, name string) (run trace.SpanContext) {
	t.Helper()
	ctx, span := f.invocation(t.Context())
	defer span.End()
	f.store.Always(fault.Release, fault.DropBefore)
	defer f.store.Always(fault.Release, fault.None)
	h := middleware.WithLock(keyfuncs.Static(name), func(context.Context) error { return nil },
		f.with(middleware.FixedLease(10*time.Second), middleware.CompleteWithin(time.Millisecond))...)
	_ = h(ctx)
	f.spans()
	if _, values := measured(t, f.reader); values["lambdalock.acquire.duration"] != 1 {
		t.Fatal("nothing was acquired")
	}
	return span.SpanContext()
}

// TestSpans shows the spans of an invocation: below its own, with the times of
// the operations, whenever they are reported, and with what they did.
func TestSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		ctx, invocation := f.invocation(lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{TenantID: "t1"}))
		h := middleware.WithLock(keyfuncs.Once(keyfuncs.ByField(func(id string) string { return id })), func(context.Context, string) error {
			time.Sleep(time.Second)
			return nil
		}, append([]middleware.Option{middleware.Observe(late)}, f.with(middleware.Store(slow{memstore.New()}))...)...)
		began := time.Now()
		if err := h(ctx, "order-1"); err != nil {
			t.Fatal(err)
		}
		invocation.End()
		spans := f.spans()
		for name, c := range map[string]struct {
			begins, ends time.Duration
			outcome      string
		}{
			"lambdalock acquire":  {0, 20 * time.Millisecond, "acquired"},
			"lambdalock complete": {2020 * time.Millisecond, 2040 * time.Millisecond, "completed"},
		} {
			s := spans[name]
			if !s.StartTime.Equal(began.Add(c.begins)) || !s.EndTime.Equal(began.Add(c.ends)) {
				t.Errorf("%s is from %v to %v", name, s.StartTime.Sub(began), s.EndTime.Sub(began))
			}
			if s.Parent.SpanID() != invocation.SpanContext().SpanID() || s.Status.Code != codes.Unset || len(s.Links) > 0 {
				t.Errorf("%s: parent %v, status %v, links %v", name, s.Parent.SpanID(), s.Status, s.Links)
			}
			got := attributes(s)
			fence := got["lambdalock.fence"]
			delete(got, "lambdalock.fence")
			want := map[string]string{
				"lambdalock.outcome": c.outcome, "lambdalock.namespace": "shop",
				"lambdalock.key": lock.Key{Name: "order-1"}.Digest(), "lambdalock.requests": "1", "lambdalock.tenant": "t1",
			}
			if !maps.Equal(got, want) || fence == "" {
				t.Errorf("%s has %v and the fence %q, want %v", name, got, fence, want)
			}
		}
		if len(spans) != 3 {
			t.Errorf("%d spans: %v", len(spans), slices.Collect(maps.Keys(spans)))
		}
	})
}

// late is an observer that lets the next one wait for a second.
func late(context.Context, lock.Observation) { time.Sleep(time.Second) }

// slow answers after 20 ms.
type slow struct{ driver.Store }

func (s slow) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	time.Sleep(20 * time.Millisecond)
	return s.Store.Acquire(ctx, c)
}

func (s slow) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	time.Sleep(20 * time.Millisecond)
	return s.Store.Settle(ctx, t)
}

// TestLink shows that the span of a refused duplicate links to the run that is
// doing the work, and says how to find it.
func TestLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		working, work := f.invocation(t.Context())
		again, duplicate := f.invocation(t.Context())
		var h func(context.Context, string) error
		h = middleware.WithLock(keyfuncs.Once(keyfuncs.ByField(func(id string) string { return id })), func(context.Context, string) error {
			if err := h(again, "order-1"); !errors.Is(err, lock.ErrHeld) {
				t.Errorf("the duplicate got %v", err)
			}
			s := f.spans()["lambdalock acquire"]
			f.wantLink(t, s, work.SpanContext())
			if s.Parent.SpanID() != duplicate.SpanContext().SpanID() || s.Status.Code != codes.Unset || attributes(s)["lambdalock.outcome"] != "in_progress" {
				t.Errorf("parent %v, status %v, attributes %v", s.Parent.SpanID(), s.Status, attributes(s))
			}
			if holder := attributes(s)["lambdalock.holder"]; !strings.Contains(holder, " pid ") || !strings.HasSuffix(holder, " trace "+work.SpanContext().TraceID().String()+" span "+work.SpanContext().SpanID().String()) {
				t.Errorf("the holder is described as %q", holder)
			}
			return nil
		}, f.with()...)
		f.exporter.Reset()
		if err := h(working, "order-1"); err != nil {
			t.Fatal(err)
		}
	})
}

func (f *fixture) wantLink(t *testing.T, s tracetest.SpanStub, run trace.SpanContext) {
	t.Helper()
	if len(s.Links) != 1 || s.Links[0].SpanContext.TraceID() != run.TraceID() || s.Links[0].SpanContext.SpanID() != run.SpanID() || !s.Links[0].SpanContext.IsRemote() {
		t.Errorf("links %v, want one to %v", s.Links, run)
	}
}

// TestTakeoverLinksToTheDead shows that the span of a takeover links to the run
// whose lock it took over.
func TestTakeoverLinksToTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		dead := f.die(t, "n")
		time.Sleep(time.Minute)
		_ = middleware.WithLock(keyfuncs.Static("n"), func(context.Context) error { return nil }, f.with()...)(t.Context())
		s := f.spans()["lambdalock acquire"]
		f.wantLink(t, s, dead)
		if s.Parent.IsValid() || attributes(s)["lambdalock.outcome"] != "taken_over" {
			t.Errorf("parent %v, attributes %v", s.Parent, attributes(s))
		}
	})
}

// TestNoLink shows whose descriptions have no run: those of holders without a
// span, or with one that is not sampled. Nothing is made of other text.
func TestNoLink(t *testing.T) {
	t.Parallel()
	unsampled := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	for name, c := range map[string]struct {
		ctx  context.Context
		text string
	}{
		"no span":     {context.Background(), ""},
		"not sampled": {trace.ContextWithSpanContext(context.Background(), unsampled), ""},
		"zeros":       {context.Background(), " trace " + strings.Repeat("0", 32) + " span " + strings.Repeat("0", 16)},
		"cut":         {context.Background(), " trace " + strings.Repeat("1", 32) + " span " + strings.Repeat("1", 15)},
		"upper case":  {context.Background(), " trace " + strings.Repeat("A", 32) + " span " + strings.Repeat("A", 16)},
		"not UTF-8":   {context.Background(), " trace \xff\xfe"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			var h func(context.Context) error
			h = middleware.WithLock(keyfuncs.Static("n"), func(context.Context) error {
				if err := h(context.Background()); !errors.Is(err, lock.ErrHeld) {
					t.Errorf("got %v, want held", err)
				}
				return nil
			}, f.with(middleware.Holder(func(_ context.Context, description string) string { return description + c.text }))...)
			_ = h(c.ctx)
			i := slices.IndexFunc(f.exporter.GetSpans(), func(s tracetest.SpanStub) bool { return attributes(s)["lambdalock.outcome"] == "held" })
			held := f.exporter.GetSpans()[i]
			holder := attributes(held)["lambdalock.holder"]
			if len(held.Links) > 0 || strings.Contains(holder, " trace ") != (c.text != "") || strings.ToValidUTF8(holder, "") != holder {
				t.Errorf("links %v, holder %q", held.Links, holder)
			}
		})
	}
}

// TestFailedOperations shows the spans of operations that failed.
func TestFailedOperations(t *testing.T) {
	for name, c := range map[string]struct {
		op   string
		span string
		kind string
	}{
		"claim":      {fault.Acquire, "lambdalock acquire", "StoreError"},
		"completion": {fault.Release, "lambdalock complete", "StoreError"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture()
				f.store.Always(c.op, fault.Deny)
				_ = middleware.WithLock(keyfuncs.Once(keyfuncs.ByField(func(id string) string { return id })), func(context.Context, string) error { return nil }, f.with()...)(t.Context(), "1")
				s := f.spans()[c.span]
				if s.Status.Code != codes.Error || s.Status.Description == "" || attributes(s)["error.type"] != c.kind {
					t.Errorf("status %v, attributes %v", s.Status, attributes(s))
				}
			})
		})
	}
}

// TestRecords shows that the spans of records are below those that Around
// gives them.
func TestRecords(t *testing.T) {
	t.Parallel()
	f := newFixture()
	tracer := f.traces.Tracer("test")
	each := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error { return nil },
		f.with(middleware.Around(func(ctx context.Context, m events.SQSMessage, next func(context.Context) error) error {
			ctx, span := tracer.Start(ctx, "record "+m.MessageId)
			defer span.End()
			return next(ctx)
		}))...)
	if _, err := each(t.Context(), batch("1", "2")); err != nil {
		t.Fatal(err)
	}
	records := map[trace.SpanID]string{}
	for _, s := range f.exporter.GetSpans() {
		records[s.SpanContext.SpanID()] = s.Name
	}
	below := map[string]int{}
	for _, s := range f.exporter.GetSpans() {
		below[s.Name+" of "+records[s.Parent.SpanID()]]++
	}
	want := map[string]int{
		"record 1 of ": 1, "lambdalock acquire of record 1": 1, "lambdalock complete of record 1": 1,
		"record 2 of ": 1, "lambdalock acquire of record 2": 1, "lambdalock complete of record 2": 1,
	}
	if !maps.Equal(below, want) {
		t.Errorf("spans %v, want %v", below, want)
	}
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
		if err := h(t.Context()); err != nil {
			t.Error(err)
		}
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
