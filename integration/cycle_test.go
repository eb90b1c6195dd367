package integration_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// invocationTime stands for a function's timeout: with a deadline the lease
// needs no heartbeat, as in Lambda.
const invocationTime = 10 * time.Minute

// BenchmarkCycle compares acquire, empty handler and release, with a new name
// each time, with the same requests of the SDK alone.
func BenchmarkCycle(b *testing.B) {
	s := servers.Dynoxide(b)
	newTable(b, s)
	for _, delay := range []time.Duration{0, 5 * time.Millisecond} {
		b.Run(fmt.Sprintf("delay=%v", delay), func(b *testing.B) { benchmarkCycle(b, s, delay) })
	}
}

func benchmarkCycle(b *testing.B, s servers.Server, delay time.Duration) {
	ctx, cancel := context.WithTimeout(b.Context(), invocationTime)
	defer cancel()
	rounds, runs := 30, 100
	if delay > 0 {
		rounds, runs = 25, 10
	}
	if testing.Short() {
		rounds = max(rounds/10, 2)
	}
	all := cycleContestants(ctx, b, s, delay)
	for _, c := range all {
		c.block(b, -20, 20) // warm-up
		c.latency, c.blocks = nil, nil
	}
	for b.Loop() {
		for r := range rounds {
			round(b, all, r, runs)
		}
	}
	reportCycle(b, fmt.Sprintf("Cycle with %v per request (%s)", delay, s.Name), all)
}

func cycleContestants(ctx context.Context, b *testing.B, s servers.Server, delay time.Duration) []*contestant {
	all := []*contestant{
		against(b, s, delay, "raw SDK", func(c *dynamodb.Client) func(lock.Key) error {
			return func(k lock.Key) error { return rawLock{c}.cycle(ctx, k.Name) }
		}),
		against(b, s, delay, "raw SDK, our requests", func(c *dynamodb.Client) func(lock.Key) error {
			r := newReplay(ctx, b, c, "")
			return func(k lock.Key) error { return r.cycle(ctx, k.Name, func() {}) }
		}),
		against(b, s, delay, "store alone", func(c *dynamodb.Client) func(lock.Key) error {
			store := dynamostore.New(c, table)
			return func(k lock.Key) error { return storeCycle(ctx, store, k.Name) }
		}),
	}
	for _, v := range []struct{ name, event, order string }{
		{"", "", ""}, {", event", "event-1", ""}, {", event and order", "event-1", "0001"},
	} {
		all = append(all, against(b, s, delay, "Locker.Do"+v.name, func(c *dynamodb.Client) func(lock.Key) error {
			locker := newLocker(b, dynamostore.New(c, table), lock.Options{Lease: lock.UntilDeadline()})
			return func(k lock.Key) error {
				k.Event, k.Order = v.event, v.order
				return locker.Do(ctx, k, nothing)
			}
		}), against(b, s, delay, "WithLock"+v.name, func(c *dynamodb.Client) func(lock.Key) error {
			h := middleware.WithLock(itself, emptyHandler, middleware.Store(dynamostore.New(c, table)), middleware.Logger(discard))
			return func(k lock.Key) error {
				k.Event, k.Order = v.event, v.order
				return h(ctx, k)
			}
		}))
	}
	return all
}

// against returns a contestant with its own client and names.
func against(b *testing.B, s servers.Server, delay time.Duration, name string, cycle func(*dynamodb.Client) func(lock.Key) error) *contestant {
	w := newWire(delay)
	b.Cleanup(w.next.CloseIdleConnections)
	run := cycle(newClient(s.Endpoint, w))
	prefix := "cycle/" + rand.Text() + "/"
	n := 0
	return &contestant{name: name, wire: w, run: func(int) error {
		n++
		return run(lock.Key{Name: fmt.Sprint(prefix, n)})
	}}
}

// storeCycle sends the two requests without the engine.
func storeCycle(ctx context.Context, store driver.Store, name string) error {
	now := time.Now()
	c := driver.Claim{Name: name, Token: rand.Text(), Holder: "benchmark", Now: now, Stamp: now, Until: now.Add(time.Minute), DeleteAfter: now.Add(time.Hour)}
	if _, ok, err := store.Acquire(ctx, &c); err != nil || !ok {
		return fmt.Errorf("acquired %v: %w", ok, err)
	}
	if _, ok, err := store.Settle(ctx, &driver.Settlement{Name: name, Token: c.Token, DeleteAfter: c.DeleteAfter, Stamp: c.Stamp}); err != nil || !ok {
		return fmt.Errorf("released %v: %w", ok, err)
	}
	return nil
}

func nothing(context.Context) error { return nil }

func emptyHandler(context.Context, lock.Key) error { return nil }

func itself(_ context.Context, k lock.Key) (lock.Key, error) { return k, nil }

func reportCycle(b *testing.B, title string, all []*contestant) {
	f := newFigures(title, "", "p50 ms", "p99 ms", "CPU ms", "allocs", "kB", "requests", "p50/raw", "CPU/raw", "allocs/raw")
	raw := all[0]
	for _, c := range all {
		f.add(c.name, ms(c.quantile(0.5)), ms(c.quantile(0.99)), ms(time.Duration(c.perRun(blockCPU))),
			whole(c.perRun(blockAllocs)), number(c.perRun(blockBytes)/1e3), number(c.perRun(blockRequests)),
			times(c.ratio(raw, blockP50)), times(c.ratio(raw, blockCPU)), times(c.ratio(raw, blockAllocs)))
		if c.name == "WithLock" {
			b.ReportMetric(c.ratio(raw, blockP50), "p50/raw")
			b.ReportMetric(c.ratio(raw, blockCPU), "CPU/raw")
			b.ReportMetric(c.ratio(raw, blockAllocs), "allocs/raw")
			b.ReportMetric(c.perRun(blockRequests), "requests/cycle")
		}
	}
}
