package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// ofTenant returns the context of an invocation that a tenant asked for.
func ofTenant(ctx context.Context, tenant string) context.Context {
	return lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{AwsRequestID: "r", TenantID: tenant})
}

// tenantWay is a wrapper of each kind around one handler of one event.
type tenantWay func(handle func(context.Context) error, opts ...middleware.Option) func(context.Context) error

var tenantWays = map[string]tenantWay{
	"WithLock": func(handle func(context.Context) error, opts ...middleware.Option) func(context.Context) error {
		h := middleware.WithLock(lockPerOrder, func(ctx context.Context, _ order) error { return handle(ctx) }, opts...)
		return func(ctx context.Context) error { return h(ctx, order{ID: "o"}) }
	},
	"a lambda.Handler": func(handle func(context.Context) error, opts ...middleware.Option) func(context.Context) error {
		h := middleware.WithLock(lockPerOrder, lambda.Handler(contextual(handle)), opts...)
		return func(ctx context.Context) error { _, err := h.Invoke(ctx, []byte(`{"id":"o"}`)); return err }
	},
	"WithLocks": func(handle func(context.Context) error, opts ...middleware.Option) func(context.Context) error {
		keys := func(context.Context, order) ([]lock.Key, error) {
			return []lock.Key{{Name: "a"}, {Name: "b", Event: "o"}}, nil
		}
		h := middleware.WithLocks(keys, func(ctx context.Context, _ order) error { return handle(ctx) }, opts...)
		return func(ctx context.Context) error { return h(ctx, order{ID: "o"}) }
	},
	"EachSQSMessage": func(handle func(context.Context) error, opts ...middleware.Option) func(context.Context) error {
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(ctx context.Context, _ events.SQSMessage) error { return handle(ctx) }, opts...)
		return func(ctx context.Context) error {
			_, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m", EventSourceARN: "q"}}})
			return err
		}
	},
	"EachSQSBody": func(handle func(context.Context) error, opts ...middleware.Option) func(context.Context) error {
		h := middleware.EachSQSBody(lockPerOrder, func(ctx context.Context, _ order) error { return handle(ctx) }, opts...)
		return func(ctx context.Context) error {
			_, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m", Body: `{"id":"o"}`}}})
			return err
		}
	},
	"WithEventBridgeDetail": func(handle func(context.Context) error, opts ...middleware.Option) func(context.Context) error {
		h := middleware.WithEventBridgeDetail(lockPerOrder, func(ctx context.Context, _ order) error { return handle(ctx) }, opts...)
		return func(ctx context.Context) error {
			return h(ctx, events.EventBridgeEvent{ID: "e", Detail: json.RawMessage(`{"id":"o"}`)})
		}
	},
}

// contextual is a lambda.Handler that only looks at its context.
type contextual func(context.Context) error

func (f contextual) Invoke(ctx context.Context, _ []byte) ([]byte, error) {
	return []byte("null"), f(ctx)
}

// TestTenants shows that the tenants of a function have locks and completed
// events of their own, whatever the source: neither waits for the other, nor is
// an event of one a duplicate of the other's.
func TestTenants(t *testing.T) { // F28, F61
	t.Parallel()
	ways := maps.Clone(tenantWays)
	ways["Latest"] = func(handle func(context.Context) error, opts ...middleware.Option) func(context.Context) error {
		h := middleware.Latest(lockPerOrder, func(ctx context.Context, _ order) error { return handle(ctx) }, opts...)
		return func(ctx context.Context) error { return h(ctx, order{ID: "o"}) }
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			var ran []string
			var call func(context.Context) error
			call = way(func(ctx context.Context) error {
				lc, _ := lambdacontext.FromContext(ctx)
				ran = append(ran, lc.TenantID)
				if len(ran) == 1 {
					return call(ofTenant(context.Background(), "red")) // while blue holds its lock
				}
				return nil
			}, f.options()...)
			for _, tenant := range []string{"blue", "red", "blue", ""} {
				if err := call(ofTenant(t.Context(), tenant)); err != nil {
					t.Errorf("%s: %v", tenant, err)
				}
			}
			if want := []string{"blue", "red", ""}; !slices.Equal(ran, want) {
				t.Errorf("ran for %q, want %q", ran, want)
			}
			if n := f.count(lock.OutcomeAlreadyCompleted); n != 2 {
				t.Errorf("%d of 2 duplicates recognised", n)
			}
		})
	}
}

// TestAcrossTenants shows that tenants share a lock if that is asked for, but
// not its events.
func TestAcrossTenants(t *testing.T) { // F28
	t.Parallel()
	for name, way := range tenantWays {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			var ran []string
			var call func(context.Context) error
			call = way(func(ctx context.Context) error {
				lc, _ := lambdacontext.FromContext(ctx)
				if ran = append(ran, lc.TenantID); len(ran) == 1 {
					if err := call(ofTenant(context.Background(), "red")); !errors.Is(err, lock.ErrHeld) {
						t.Errorf("while blue holds the lock: %v", err)
					}
				}
				return nil
			}, f.options(middleware.AcrossTenants())...)
			for _, tenant := range []string{"blue", "red", "blue", "red"} {
				if err := call(ofTenant(t.Context(), tenant)); err != nil {
					t.Errorf("%s: %v", tenant, err)
				}
			}
			if want := []string{"blue", "red"}; !slices.Equal(ran, want) {
				t.Errorf("ran for %q, want %q", ran, want)
			}
		})
	}
}

// TestAcrossTenantsWithoutEvent shows that a key without an Event stays one: no
// later event of the tenant is taken for a duplicate.
func TestAcrossTenantsWithoutEvent(t *testing.T) { // F28
	t.Parallel()
	ran := 0
	h := middleware.WithLock(keyfuncs.ByField(func(o order) string { return o.ID }), func(context.Context, order) error {
		ran++
		return nil
	}, newFixture().options(middleware.AcrossTenants())...)
	for range 2 {
		expect.OK(t, h(ofTenant(t.Context(), "blue"), order{ID: "1"}))
	}
	if ran != 2 {
		t.Errorf("ran %d times, want 2", ran)
	}
}

// TestNamesOfTenants shows that two tenants never have one name, and that a key
// without a name stays an error.
func TestNamesOfTenants(t *testing.T) {
	t.Parallel()
	seen := map[string][2]string{}
	for _, tenant := range []string{"", "blue", "blue/a", "a", "tenant/blue", "%2F"} {
		for _, name := range []string{"o", "a/o", "blue/o", "tenant/blue/o"} {
			f := newFixture()
			h := middleware.WithLock(keyfuncs.ByField(func(o order) string { return o.ID }), func(ctx context.Context, _ order) error {
				l, _ := lock.FromContext(ctx)
				if other, ok := seen[l.Key.Name]; ok && (tenant != "" && other[0] != "") {
					t.Errorf("%q has %q and %q", l.Key.Name, other, [2]string{tenant, name})
				}
				seen[l.Key.Name] = [2]string{tenant, name}
				return nil
			}, f.options()...)
			expect.OK(t, h(ofTenant(t.Context(), tenant), order{ID: name}))
			if err := h(ofTenant(t.Context(), tenant), order{}); !errors.As(err, new(*lock.NoKeyError)) {
				t.Errorf("without a name: %v", err)
			}
		}
	}
}

// TestLimitOfTenants shows that each tenant has its own limit, and that they
// share one across tenants.
func TestLimitOfTenants(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opts []middleware.Option
		held bool
	}{
		"each":   {nil, false},
		"shared": {[]middleware.Option{middleware.AcrossTenants()}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var depth int
			var h func(context.Context) error
			opts := append([]middleware.Option{fixedLease(time.Minute)}, c.opts...)
			h = middleware.WithLimit(toPartner[any], 2, func(context.Context) error {
				if depth++; depth == 3 {
					return nil
				}
				return h(ofTenant(context.Background(), []string{"", "blue", "red"}[depth]))
			}, newFixture().options(opts...)...)
			if err := h(ofTenant(t.Context(), "blue")); errors.Is(err, lock.ErrHeld) != c.held || err != nil && !c.held {
				t.Errorf("%v; want held: %t", err, c.held)
			}
		})
	}
}
