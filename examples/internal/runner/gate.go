package main

import (
	"context"
	"fmt"
	"sync"
)

// gate holds back certain requests, like a network that is slow: what waits there
// is at work for as long as it is told to.
type gate struct {
	mu      sync.Mutex
	holds   func(update) bool // nil: the gate is open
	opened  chan struct{}
	rows    map[string]bool // of the requests that have arrived
	arrived chan struct{}
}

func (g *gate) close(holds func(update) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds, g.opened = holds, make(chan struct{})
	g.rows, g.arrived = map[string]bool{}, make(chan struct{}, 1)
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.holds != nil {
		g.holds = nil
		close(g.opened)
	}
}

// pass waits while the gate is closed for u. It is false if the client goes away.
func (g *gate) pass(ctx context.Context, u update) bool {
	g.mu.Lock()
	if g.holds == nil || !g.holds(u) {
		g.mu.Unlock()
		return true
	}
	g.rows[u.row()] = true
	select {
	case g.arrived <- struct{}{}:
	default:
	}
	opened := g.opened
	g.mu.Unlock()
	select {
	case <-opened:
		return true
	case <-ctx.Done():
		return false
	}
}

// await waits until requests for n rows have arrived. It is an error if what sends
// them is over before.
func (g *gate) await(ctx context.Context, n int, over <-chan struct{}) error {
	for {
		g.mu.Lock()
		have, arrived := len(g.rows), g.arrived
		g.mu.Unlock()
		if have >= n {
			return nil
		}
		select {
		case <-arrived:
		case <-over:
			return fmt.Errorf("it was over with %d of %d locks held", have, n)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
