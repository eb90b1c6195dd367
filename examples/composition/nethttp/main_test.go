package main

import (
	"testing"

	"github.com/awslabs/aws-lambda-go-api-proxy/httpadapter"
	"github.com/newrelic/go-agent/v3/integrations/nrlambda"
	"github.com/newrelic/go-agent/v3/newrelic"
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

// TestTraced shows that tracers change nothing for the client, in both orders.
// With the lock outside, WithLock does not see a response in the types.
func TestTraced(t *testing.T) {
	t.Parallel()
	app, err := newrelic.NewApplication(nrlambda.ConfigOption())
	if err != nil {
		t.Fatal(err)
	}
	key := keyfuncs.Optional(keyfuncs.IdempotencyKey[request])
	for name, build := range map[string]suite.Build{
		"OpenTelemetry outside": func(charge suite.Charge, opts ...middleware.Option) any {
			return otellambda.InstrumentHandler(handler(charge, opts...))
		},
		"OpenTelemetry inside": func(charge suite.Charge, opts ...middleware.Option) any {
			return middleware.WithLock(key, otellambda.InstrumentHandler(httpadapter.NewV2(routes(charge)).ProxyWithContext), opts...)
		},
		"New Relic outside": func(charge suite.Charge, opts ...middleware.Option) any {
			return nrlambda.Wrap(handler(charge, opts...), app)
		},
		"New Relic inside": func(charge suite.Charge, opts ...middleware.Option) any {
			return middleware.WithLock(key, nrlambda.Wrap(httpadapter.NewV2(routes(charge)).ProxyWithContext, app), opts...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite.HTTP(t, build)
		})
	}
}
