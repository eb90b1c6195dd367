package objectstore

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// Prober runs [Probe] until a service has passed it. It is safe for concurrent
// use.
type Prober struct {
	passed atomic.Bool
	turn   chan struct{} // has room for the one that probes
}

// NewProber returns a Prober. If the service is known to honour conditions, it
// has passed already.
func NewProber(known bool) *Prober {
	p := &Prober{turn: make(chan struct{}, 1)}
	p.passed.Store(known)
	return p
}

// Passed reports whether the service has passed.
func (p *Prober) Passed() bool { return p.passed.Load() }

// Probe probes the service unless it has passed. Of several callers, one probes
// and the others wait, until their contexts end.
func (p *Prober) Probe(ctx context.Context, o Objects) error {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return &driver.Error{
			Store: o.String(), Temporary: true, Rejected: true, Conflict: true,
			Err: fmt.Errorf("another request is checking the service, and this one waited for it: %w", ctx.Err()),
		}
	}
	if p.Passed() {
		return nil
	}
	err := Probe(ctx, o)
	p.passed.Store(err == nil)
	return err
}
