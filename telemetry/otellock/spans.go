package otellock

import (
	"context"
	"regexp"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/lambdalock/lambdalock/lock"
)

type tracer struct{ trace.Tracer }

// span makes the span of the operation that an observation reports, which is
// over. Other observations have none.
func (t tracer) span(ctx context.Context, o lock.Observation, attributes attribute.Set) {
	if o.Op == "" {
		return
	}
	with := []trace.SpanStartOption{trace.WithTimestamp(o.Began), trace.WithAttributes(attributes.ToSlice()...)}
	if holder := runOf(o.Holder); holder.IsValid() {
		with = append(with, trace.WithLinks(trace.Link{SpanContext: holder}))
	}
	_, span := t.Start(ctx, "lambdalock "+o.Op, with...)
	if span.IsRecording() {
		span.SetAttributes(details(ctx, o)...)
	}
	if o.Failed() {
		span.SetStatus(codes.Error, valid(o.Err.Error()))
	}
	span.End(trace.WithTimestamp(o.Began.Add(o.Duration)))
}

// details returns the attributes that have too many values for a metric.
func details(ctx context.Context, o lock.Observation) []attribute.KeyValue {
	var all []attribute.KeyValue
	if o.Key.Name != "" {
		all = text(all, "lambdalock.key", o.Key.Digest())
	}
	if o.Fence != 0 {
		all = append(all, attribute.Int64("lambdalock.fence", o.Fence))
	}
	all = append(all, attribute.Int("lambdalock.requests", o.Requests))
	all = text(all, "lambdalock.holder", o.Holder)
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		all = text(all, "lambdalock.tenant", lc.TenantID)
	}
	return all
}

// describe adds the run that asks for the lock to its description.
func describe(ctx context.Context, description string) string {
	run := trace.SpanContextFromContext(ctx)
	if !run.IsValid() || !run.IsSampled() {
		return description
	}
	return description + " trace " + run.TraceID().String() + " span " + run.SpanID().String()
}

var described = regexp.MustCompile(` trace ([0-9a-f]{32}) span ([0-9a-f]{16})`)

// runOf returns the run in the description of a holder. It is not valid if
// there is none.
func runOf(description string) trace.SpanContext {
	ids := described.FindStringSubmatch(description)
	if ids == nil {
		return trace.SpanContext{}
	}
	traceID, _ := trace.TraceIDFromHex(ids[1]) // all zeros are invalid
	spanID, _ := trace.SpanIDFromHex(ids[2])
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: spanID, TraceFlags: trace.FlagsSampled, Remote: true})
}
