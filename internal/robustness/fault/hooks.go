package fault

import (
	"context"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// Hooks is a store whose requests a test takes into its own hands: a function
// that is set gets them instead of the store below.
type Hooks struct {
	driver.Store
	OnAcquire func(context.Context, *driver.Claim) (driver.Row, bool, error)
	OnRenew   func(context.Context, *driver.Renewal) (driver.Row, bool, error)
	OnSettle  func(context.Context, *driver.Settlement) (driver.Row, bool, error)
	// Each gets the requests for which there is no other function.
	Each func(context.Context, Request) (driver.Row, bool, error)
}

// Request is what [Hooks].Each gets.
type Request struct {
	Op, Name, Token string
	Send            func(context.Context) (driver.Row, bool, error) // to the store below
}

func (h Hooks) each(ctx context.Context, r Request) (driver.Row, bool, error) {
	if h.Each != nil {
		return h.Each(ctx, r)
	}
	return r.Send(ctx)
}

// Acquire implements [driver.Store].
func (h Hooks) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	if h.OnAcquire != nil {
		return h.OnAcquire(ctx, c)
	}
	claim := *c // as it was sent: the caller dates its claim anew
	return h.each(ctx, Request{Acquire, c.Name, c.Token, func(ctx context.Context) (driver.Row, bool, error) { return h.Store.Acquire(ctx, &claim) }})
}

// Renew implements [driver.Store].
func (h Hooks) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	if h.OnRenew != nil {
		return h.OnRenew(ctx, r)
	}
	return h.each(ctx, Request{Renew, r.Name, r.Token, func(ctx context.Context) (driver.Row, bool, error) { return h.Store.Renew(ctx, r) }})
}

// Settle implements [driver.Store].
func (h Hooks) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	if h.OnSettle != nil {
		return h.OnSettle(ctx, t)
	}
	return h.each(ctx, Request{Release, t.Name, t.Token, func(ctx context.Context) (driver.Row, bool, error) { return h.Store.Settle(ctx, t) }})
}
