package otellock_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// attributes returns a span's attributes as text.
func attributes(s tracetest.SpanStub) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

// TestSpans shows the spans of an invocation: below its own, with the times of
// the operations, whenever they are reported, and with what they did.
func TestSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		slow := fault.Hooks{Store: memstore.New(), Each: func(ctx context.Context, r fault.Request) (driver.Row, bool, error) {
			time.Sleep(20 * time.Millisecond)
			return r.Send(ctx)
		}}
		ctx, invocation := f.invocation(lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{TenantID: "t1"}))
		h := middleware.WithLock(keyfuncs.Once(keyfuncs.ByField(func(id string) string { return id })), func(context.Context, string) error {
			time.Sleep(time.Second)
			return nil
		}, append([]middleware.Option{middleware.Observe(late)}, f.with(middleware.Store(slow))...)...)
		began := time.Now()
		expect.Must(t, h(ctx, "order-1"))
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
				"lambdalock.key": lock.Key{Name: "tenant/t1/order-1"}.Digest(), "lambdalock.requests": "1", "lambdalock.tenant": "t1",
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
		expect.Must(t, h(working, "order-1"))
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

// TestFailedOperations shows the spans of operations that failed. What the
// store said is not UTF-8.
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
				denies := fault.Hooks{Store: f.store, Each: func(ctx context.Context, r fault.Request) (driver.Row, bool, error) {
					if r.Op == c.op {
						return driver.Row{}, false, &driver.Error{Store: "the store", Lasting: true, Answered: true, Unapplied: true, Err: errors.New("\xff denied")}
					}
					return r.Send(ctx)
				}}
				_ = middleware.WithLock(keyfuncs.Once(keyfuncs.ByField(func(id string) string { return id })), func(context.Context, string) error { return nil }, f.with(middleware.Store(denies))...)(t.Context(), "1")
				s := f.spans()[c.span]
				if s.Status.Code != codes.Error || !strings.Contains(s.Status.Description, "\uFFFD denied") || attributes(s)["error.type"] != c.kind {
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
	expect.Value(each(t.Context(), batch("1", "2")))(t)
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
