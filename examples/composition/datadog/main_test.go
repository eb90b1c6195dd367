package main

import (
	"context"
	"testing"

	ddlambda "github.com/DataDog/datadog-lambda-go"
	"github.com/aws/aws-lambda-go/lambda"
	"gopkg.in/DataDog/dd-trace-go.v1/ddtrace/mocktracer"
	"gopkg.in/DataDog/dd-trace-go.v1/ddtrace/tracer"

	"github.com/lambdalock/lambdalock/examples/composition/suite"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestOrders runs its cases one after the other, because Datadog keeps the
// tracer and the current span in variables of the process.
func TestOrders(t *testing.T) {
	for name, c := range map[string]struct {
		build      func(suite.Handle, *ddlambda.Config, ...middleware.Option) any
		skippedToo bool
	}{
		"tracer outside": {tracerOutside, true},
		"lock outside":   {lockOutside, false},
		"tracer outside, lambda.Handler": {func(h suite.Handle, cfg *ddlambda.Config, opts ...middleware.Option) any {
			return ddlambda.WrapLambdaHandlerInterface(middleware.WithLock(keyfuncs.EventBridgeEvent, lambda.Handler(suite.Raw{Handle: h}), opts...), cfg)
		}, true},
		"lock outside, lambda.Handler": {func(h suite.Handle, cfg *ddlambda.Config, opts ...middleware.Option) any {
			return middleware.WithLock(keyfuncs.EventBridgeEvent, ddlambda.WrapLambdaHandlerInterface(suite.Raw{Handle: h}, cfg), opts...)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var mock mocktracer.Tracer
			build := func(h suite.Handle) any {
				// With the log forwarder, nothing is sent.
				wrapped := c.build(h, &ddlambda.Config{ShouldUseLogForwarder: true, DDTraceEnabled: true}, suite.Options()...)
				mock = mocktracer.Start() // takes the place of the tracer that the wrapper has started
				t.Cleanup(mock.Stop)
				return wrapped
			}
			hasSpan := func(ctx context.Context) bool { _, ok := tracer.SpanFromContext(ctx); return ok }
			spans := func() int {
				defer mock.Reset()
				return len(mock.FinishedSpans())
			}
			suite.Tracer(t, build, hasSpan, spans, c.skippedToo)
		})
	}
}

// TestWrapFunctionOfLambdaHandler shows why a lambda.Handler needs
// ddlambda.WrapLambdaHandlerInterface.
func TestWrapFunctionOfLambdaHandler(t *testing.T) {
	locked := middleware.WithLock(keyfuncs.EventBridgeEvent, lambda.Handler(suite.Raw{Handle: handle}), suite.Options()...)
	if wrapped := ddlambda.WrapFunction(locked, &ddlambda.Config{ShouldUseLogForwarder: true}); wrapped != any(locked) {
		t.Errorf("%T, want the handler untraced", wrapped)
	}
}
