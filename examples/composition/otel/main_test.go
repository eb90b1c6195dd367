package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"go.opentelemetry.io/contrib/instrumentation/github.com/aws/aws-lambda-go/otellambda"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/lambdalock/lambdalock/examples/composition/suite"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

func TestOrders(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		build      func(suite.Handle, *sdktrace.TracerProvider, ...middleware.Option) any
		skippedToo bool
	}{
		"tracer outside": {tracerOutside, true},
		"lock outside":   {lockOutside, false},
		"tracer outside, lambda.Handler": {func(h suite.Handle, tp *sdktrace.TracerProvider, opts ...middleware.Option) any {
			locked := middleware.WithLock(keyfuncs.EventBridgeEvent, lambda.Handler(suite.Raw{Handle: h}), opts...)
			return otellambda.WrapHandler(locked, otellambda.WithTracerProvider(tp))
		}, true},
		"lock outside, lambda.Handler": {func(h suite.Handle, tp *sdktrace.TracerProvider, opts ...middleware.Option) any {
			return middleware.WithLock(keyfuncs.EventBridgeEvent, otellambda.WrapHandler(suite.Raw{Handle: h}, otellambda.WithTracerProvider(tp)), opts...)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exporter := tracetest.NewInMemoryExporter()
			tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
			build := func(h suite.Handle) any { return c.build(h, tp, suite.Options()...) }
			hasSpan := func(ctx context.Context) bool { return trace.SpanFromContext(ctx).IsRecording() }
			spans := func() int {
				defer exporter.Reset()
				return len(slices.DeleteFunc(exporter.GetSpans(), ofLock))
			}
			suite.Tracer(t, build, hasSpan, spans, c.skippedToo)
		})
	}
}

// ofLock reports whether a span is one of package otellock.
func ofLock(s tracetest.SpanStub) bool { return strings.HasPrefix(s.Name, "lambdalock ") }

// TestOutcomeInSpans shows that the spans of the lock are below that of the
// invocation, and that the one of a duplicate says why the handler did not run.
func TestOutcomeInSpans(t *testing.T) {
	t.Parallel()
	exporter := tracetest.NewInMemoryExporter()
	h := tracerOutside(handle, sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)), suite.Options()...)
	for _, want := range [][]string{{"lambdalock acquire: acquired", "lambdalock complete: completed"}, {"lambdalock acquire: already_completed"}} {
		exporter.Reset()
		if _, err := suite.Invoke(t.Context(), h, []byte(`{"id":"1","source":"shop.orders","detail-type":"order","detail":{}}`)); err != nil {
			t.Fatal(err)
		}
		spans := exporter.GetSpans() // by their end
		invocation := spans[len(spans)-1]
		var got []string
		for _, s := range spans[:len(spans)-1] {
			outcome := ""
			for _, a := range s.Attributes {
				if a.Key == "lambdalock.outcome" {
					outcome = a.Value.AsString()
				}
			}
			if got = append(got, s.Name+": "+outcome); s.Parent.SpanID() != invocation.SpanContext.SpanID() {
				t.Errorf("%s is not below the span of the invocation", s.Name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("the spans are %q, want %q", got, want)
		}
	}
}

// TestSpansOfALockOutside shows that nothing is above or below them.
func TestSpansOfALockOutside(t *testing.T) {
	t.Parallel()
	exporter := tracetest.NewInMemoryExporter()
	h := lockOutside(handle, sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)), suite.Options()...)
	if _, err := suite.Invoke(t.Context(), h, []byte(`{"id":"1","source":"shop.orders","detail-type":"order","detail":{}}`)); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range exporter.GetSpans() {
		if names = append(names, s.Name); s.Parent.IsValid() {
			t.Errorf("%s is below another span", s.Name)
		}
	}
	if len(names) != 3 || names[0] != "lambdalock acquire" || names[2] != "lambdalock complete" {
		t.Errorf("the spans are %q", names)
	}
}

// TestNumbers shows what otellambda makes of a number beyond 2⁵³, in both
// orders, and what keeps it.
func TestNumbers(t *testing.T) {
	t.Parallel()
	const payload = `{"id":"1","source":"shop.orders","detail-type":"order","detail":{"order":9007199254740993}}`
	for name, build := range map[string]func(suite.Handle, *sdktrace.TracerProvider, ...middleware.Option) any{
		"tracer outside": tracerOutside, "lock outside": lockOutside,
	} {
		for _, c := range []struct {
			useNumber bool
			want      string
		}{{false, `{"order":9007199254740992}`}, {true, `{"order":9007199254740993}`}} {
			t.Run(fmt.Sprintf("%s, WithUseNumber(%v)", name, c.useNumber), func(t *testing.T) {
				t.Parallel()
				h := build(func(_ context.Context, e events.EventBridgeEvent) error {
					if string(e.Detail) != c.want {
						t.Errorf("the handler got %s, want %s", e.Detail, c.want)
					}
					return nil
				}, sdktrace.NewTracerProvider(), suite.Options()...)
				options := lambda.NewHandlerWithOptions(h, lambda.WithUseNumber(c.useNumber))
				if _, err := options.Invoke(t.Context(), []byte(payload)); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestInstrumentHandlerOfLambdaHandler shows why a lambda.Handler needs
// otellambda.WrapHandler.
func TestInstrumentHandlerOfLambdaHandler(t *testing.T) {
	t.Parallel()
	locked := middleware.WithLock(keyfuncs.EventBridgeEvent, lambda.Handler(suite.Raw{Handle: handle}), suite.Options()...)
	if _, err := suite.Invoke(t.Context(), otellambda.InstrumentHandler(locked), []byte(`{"id":"1"}`)); err == nil || !strings.Contains(err.Error(), "kind") {
		t.Errorf("%v, want that its kind is wrong", err)
	}
}

// TestRecords shows the spans of a batch whose second record fails, and of its
// second delivery.
func TestRecords(t *testing.T) {
	t.Parallel()
	exporter := tracetest.NewInMemoryExporter()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	ran := map[string]int{}
	h := records(func(ctx context.Context, m events.SQSMessage) error {
		if ran[m.MessageId]++; !trace.SpanFromContext(ctx).IsRecording() {
			t.Error("the handler's context has no span")
		}
		if m.MessageId == "m2" && ran["m2"] == 1 {
			return errors.New("the order system is down")
		}
		return nil
	}, tp, append(suite.Options(), middleware.Concurrency(1))...)
	for delivery, want := range []struct{ answer, status2 string }{
		{`{"batchItemFailures":[{"itemIdentifier":"m2"}]}`, "Error"},
		{`{"batchItemFailures":[]}`, "Unset"},
	} {
		exporter.Reset()
		out, err := suite.Invoke(t.Context(), h, []byte(`{"Records":[{"messageId":"m1","eventSource":"aws:sqs"},{"messageId":"m2","eventSource":"aws:sqs"}]}`))
		if err != nil || string(out) != want.answer {
			t.Errorf("delivery %d: %s, %v", delivery+1, out, err)
		}
		spans := slices.DeleteFunc(exporter.GetSpans(), ofLock) // by their end: the records, the invocation
		if len(spans) != 3 || spans[0].Parent.SpanID() != spans[2].SpanContext.SpanID() || spans[1].Parent.SpanID() != spans[2].SpanContext.SpanID() {
			t.Fatalf("delivery %d: %d spans, want two below a third", delivery+1, len(spans))
		}
		if got := spans[1].Status.Code.String(); got != want.status2 {
			t.Errorf("delivery %d: the span of m2 has status %s, want %s", delivery+1, got, want.status2)
		}
	}
	if ran["m1"] != 1 || ran["m2"] != 2 {
		t.Errorf("the handler ran for %v", ran)
	}
}
