package middleware_test

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/simulation"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestSimulation lets WithLock, Latest and OnInterrupted wrap handlers whose
// processes and requests fail.
func TestSimulation(t *testing.T) { // F1 to F6, F15, F18 to F21, F44, F48
	t.Parallel()
	open := func(_ *testing.T, h *simulation.History) func(uint64) driver.Store {
		rows := memstore.New()
		return func(client uint64) driver.Store {
			if client == simulation.Watcher {
				return rows
			}
			return fault.NewStore(rows, h.Plan(client), h.Late)
		}
	}
	simulation.Run(t, open, simulation.Config{Histories: 200, Share: 2, Wrap: wrapSimulated, Latest: latestSimulated, Once: onceSimulated})
}

func simulatedOptions(store driver.Store, o *lock.Options) []middleware.Option {
	options := []middleware.Option{
		middleware.Store(store), middleware.Namespace(""), middleware.Observe(o.Observe),
		middleware.Logger(o.Logger), engine(func(e *lock.Options) { e.RememberEvents, e.Holder = o.RememberEvents, o.Holder }),
	}
	switch o.Lease {
	case lock.UntilDeadline():
	case lock.FixedLease(5 * time.Second):
		options = append(options, fixedLease(5*time.Second))
	case lock.Heartbeat(4 * time.Second):
		options = append(options, middleware.Heartbeat(4*time.Second))
	default:
		panic("a lease that no option sets")
	}
	if o.HoldAtLeast > 0 {
		options = append(options, middleware.HoldAtLeast(o.HoldAtLeast))
	}
	if o.MaxWait > 0 {
		options = append(options, middleware.OnHeld(middleware.Wait(o.MaxWait)))
	}
	return options
}

func byItself(_ context.Context, k lock.Key) (lock.Key, error) { return k, nil }

func wrapSimulated(store driver.Store, o *lock.Options, key lock.Key, handler func(context.Context) error) func(context.Context) error {
	wrapped := middleware.WithLock(byItself, func(ctx context.Context, _ lock.Key) error { return handler(ctx) }, simulatedOptions(store, o)...)
	return func(ctx context.Context) error { return wrapped(ctx, key) }
}

func onceSimulated(store driver.Store, o *lock.Options, key lock.Key, handler func(context.Context) error) func(context.Context) error {
	var failed error // the completion, although the handler succeeded
	observing := *o
	observing.Observe = func(ctx context.Context, seen lock.Observation) {
		if seen.Op == "complete" {
			failed = seen.Err
		}
		o.Observe(ctx, seen)
	}
	options := append(simulatedOptions(store, &observing), engine(func(e *lock.Options) { e.OnInterrupted = o.OnInterrupted }))
	wrapped := middleware.WithLock(byItself, func(ctx context.Context, _ lock.Key) error { return handler(ctx) }, options...)
	return func(ctx context.Context) error { return cmp.Or(wrapped(ctx, key), failed) }
}

func latestSimulated(store driver.Store, o *lock.Options, key lock.Key, handler func(context.Context) error) func(context.Context) error {
	wrapped := middleware.Latest(byItself, func(ctx context.Context, _ lock.Key) error { return handler(ctx) }, simulatedOptions(store, o)...)
	return func(ctx context.Context) error { return wrapped(ctx, key) }
}
