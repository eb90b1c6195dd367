package integration_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// BenchmarkDuplicate measures an event that must not run, because its first
// delivery is still in progress or was completed.
func BenchmarkDuplicate(b *testing.B) {
	s := servers.Dynoxide(b)
	newTable(b, s)
	for _, delay := range []time.Duration{0, 5 * time.Millisecond} {
		b.Run(fmt.Sprintf("delay=%v", delay), func(b *testing.B) { benchmarkDuplicate(b, s, delay) })
	}
}

func benchmarkDuplicate(b *testing.B, s servers.Server, delay time.Duration) {
	ctx, cancel := context.WithTimeout(b.Context(), invocationTime)
	defer cancel()
	rounds, runs := 10, 50
	if testing.Short() {
		rounds, runs = 3, 10
	}
	all := []*contestant{rawRefusal(ctx, b, s, delay), heldDuplicate(ctx, b, s, delay), completedDuplicate(ctx, b, s, delay)}
	for b.Loop() {
		for r := range rounds {
			round(b, all, r, runs)
		}
	}
	f := newFigures(fmt.Sprintf("Duplicate with %v per request (%s)", delay, s.Name), "", "p50 ms", "p99 ms", "CPU ms", "allocs", "requests")
	for _, c := range all {
		f.add(c.name, ms(c.quantile(0.5)), ms(c.quantile(0.99)), ms(time.Duration(c.perRun(blockCPU))), whole(c.perRun(blockAllocs)), number(c.perRun(blockRequests)))
	}
	b.ReportMetric(all[1].perRun(blockRequests), "requests-held")
	b.ReportMetric(all[2].perRun(blockRequests), "requests-completed")
}

func rawRefusal(ctx context.Context, b *testing.B, s servers.Server, delay time.Duration) *contestant {
	w := newWire(delay)
	b.Cleanup(w.next.CloseIdleConnections)
	raw := rawLock{newClient(s.Endpoint, w)}
	name := "raw/" + rand.Text()
	expect.Must(b, raw.acquire(ctx, name, rand.Text(), time.Hour))
	return &contestant{name: "raw SDK, refused", wire: w, run: func(int) error {
		err := raw.acquire(ctx, name, rand.Text(), time.Hour)
		if !errors.As(err, new(*types.ConditionalCheckFailedException)) {
			return fmt.Errorf("a second owner got %w", err)
		}
		return nil
	}}
}

func heldDuplicate(ctx context.Context, b *testing.B, s servers.Server, delay time.Duration) *contestant {
	return duplicate(ctx, b, s, delay, "WithLock, held", func(h func(context.Context, lock.Key) error, k lock.Key, l *lock.Locker) func(int) error {
		if _, err := l.Acquire(ctx, k); err != nil {
			b.Fatal(err)
		}
		return func(int) error {
			var held *lock.HeldError
			if err := h(ctx, k); !errors.As(err, &held) || !held.Duplicate {
				return fmt.Errorf("a duplicate got %w", err)
			}
			return nil
		}
	})
}

func completedDuplicate(ctx context.Context, b *testing.B, s servers.Server, delay time.Duration) *contestant {
	return duplicate(ctx, b, s, delay, "WithLock, completed", func(h func(context.Context, lock.Key) error, k lock.Key, l *lock.Locker) func(int) error {
		expect.Must(b, l.Do(ctx, k, nothing))
		return func(int) error { return h(ctx, k) }
	})
}

// duplicate returns a contestant whose handler must never run.
func duplicate(ctx context.Context, b *testing.B, s servers.Server, delay time.Duration, name string,
	prepare func(func(context.Context, lock.Key) error, lock.Key, *lock.Locker) func(int) error,
) *contestant {
	w := newWire(delay)
	b.Cleanup(w.next.CloseIdleConnections)
	store := dynamostore.New(newClient(s.Endpoint, w), table)
	handler := middleware.WithLock(itself, func(context.Context, lock.Key) error {
		return errors.New("the handler ran for a duplicate")
	}, middleware.Store(store), middleware.Logger(discard))
	key := lock.Key{Name: "duplicate/" + rand.Text(), Event: "e1"}
	run := prepare(handler, key, newLocker(b, store, lock.Options{Lease: lock.UntilDeadline()}))
	return &contestant{name: name, wire: w, run: run}
}
