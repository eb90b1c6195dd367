package main

import (
	"testing"

	"github.com/aws/aws-lambda-go/lambdaurl"
	"go.opentelemetry.io/contrib/instrumentation/github.com/aws/aws-lambda-go/otellambda"

	"github.com/lambdalock/lambdalock/examples/composition/suite"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

func TestHandler(t *testing.T) {
	t.Parallel()
	suite.HTTP(t, func(charge suite.Charge, opts ...middleware.Option) any {
		return handler(charge, opts...)
	})
}

// TestTraced shows that a tracer changes nothing for the client, in both
// orders. With the lock outside, WithLock does not see a response in the types.
func TestTraced(t *testing.T) {
	t.Parallel()
	key := keyfuncs.Optional(keyfuncs.IdempotencyKey[request])
	for name, build := range map[string]suite.Build{
		"OpenTelemetry outside": func(charge suite.Charge, opts ...middleware.Option) any {
			return otellambda.InstrumentHandler(handler(charge, opts...))
		},
		"OpenTelemetry inside": func(charge suite.Charge, opts ...middleware.Option) any {
			return middleware.WithLock(key, otellambda.InstrumentHandler(lambdaurl.Wrap(routes(charge))), opts...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite.HTTP(t, build)
		})
	}
}
