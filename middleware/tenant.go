package middleware

import (
	"context"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// AcrossTenants lets the tenants of a function with tenant isolation share
// their locks, for example in front of a partner whom all of them call.
// Default: each tenant has its own locks and stored results, because its id,
// which Lambda passes in the context, becomes part of the Name.
//
// Also across tenants, the same event of another tenant is not a duplicate, but
// an Order counts for all of them. [Latest] and [OnlyLatest] panic.
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
