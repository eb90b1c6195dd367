package middleware

import (
	"context"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// AcrossTenants lets the tenants of a function with tenant isolation share
// their locks, for example in front of a partner whom all of them call.
//
// Default: each tenant has locks of its own. The name of its keys begins with
// tenant/ and its id, so tenants neither wait for each other nor get each
// other's stored results. The id is in the context that Lambda passes to the
// handler: a handler that takes no context has no tenant.
//
// Also across tenants, an event belongs to its tenant: the same event of
// another tenant is not a duplicate. An Order counts for all of them.
// OnHeld([Coalesce]) is refused: a run for one tenant is not one for another.
//
// Source: https://docs.aws.amazon.com/lambda/latest/dg/tenant-isolation.html.
func AcrossTenants() Option { return func(s *settings) { s.acrossTenants = true } }

// ofTenant makes a key one of the tenant who asked for the invocation, if any.
func (s *settings) ofTenant(ctx context.Context, k *lock.Key) {
	lc, ok := lambdacontext.FromContext(ctx)
	if !ok || lc.TenantID == "" {
		return
	}
	part := &k.Name
	if s.acrossTenants {
		part = &k.Event
	}
	if *part != "" { // empty means none, and must stay empty
		*part = keyparts.OfTenant(lc.TenantID, *part)
	}
}
