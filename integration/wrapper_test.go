package integration_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// BenchmarkWrapper measures what the wrapper and the engine cost by
// themselves: a store in memory answers immediately, so they account for the
// difference from the bare store.
func BenchmarkWrapper(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), invocationTime)
	defer cancel()
	rounds, runs := 40, 2000
	if testing.Short() {
		rounds = 8
	}
	all := wrapperContestants(ctx, b)
	for b.Loop() {
		for r := range rounds {
			round(b, all, r, runs)
		}
	}
	f := newFigures("Wrapper over a store in memory", "", "ns", "allocs", "B", "ns over bare", "allocs over bare", "B over bare")
	bare := all[0]
	ns := func(c *contestant) float64 { return c.middle(blockMean) }
	for _, c := range all {
		f.add(c.name, whole(ns(c)), number(c.perRun(blockAllocs)), whole(c.perRun(blockBytes)), whole(ns(c)-ns(bare)),
			number(c.perRun(blockAllocs)-bare.perRun(blockAllocs)), whole(c.perRun(blockBytes)-bare.perRun(blockBytes)))
	}
	b.ReportMetric(ns(all[1])-ns(bare), "overhead-ns")
	b.ReportMetric(all[1].perRun(blockAllocs)-bare.perRun(blockAllocs), "overhead-allocs")
}

func wrapperContestants(ctx context.Context, b *testing.B) []*contestant {
	key := lock.Key{Name: "wrapper"}
	locker := newLocker(b, memstore.New(), lock.Options{Lease: lock.UntilDeadline()})
	plain := middleware.WithLock(itself, emptyHandler, middleware.Store(memstore.New()), middleware.Logger(discard))
	result := middleware.WithLock(itself, resultHandler, middleware.Store(memstore.New()), middleware.Logger(discard))
	bare := bareStore(ctx)
	return []*contestant{
		{name: "bare store", run: bare},
		{name: "WithLock(func(ctx, E) error)", run: func(int) error { return plain(ctx, key) }},
		{name: "WithLock(func(ctx, E) (R, error))", run: func(int) error { _, err := result(ctx, key); return err }},
		{name: "Locker.Do", run: func(int) error { return locker.Do(ctx, key, nothing) }},
	}
}

// bareStore runs cycles of one prepared claim, whose stamp has to rise every
// time.
func bareStore(ctx context.Context) func(int) error {
	store := memstore.New()
	now := time.Now()
	c := driver.Claim{Name: "/wrapper", Token: "token", Holder: "benchmark", Now: now, Stamp: now, Until: now.Add(time.Hour), DeleteAfter: now.Add(time.Hour)}
	s := driver.Settlement{Name: c.Name, Token: c.Token, DeleteAfter: c.DeleteAfter}
	return func(int) error {
		c.Stamp = c.Stamp.Add(time.Microsecond)
		_, acquired, err := store.Acquire(ctx, &c)
		if err != nil || !acquired {
			return fmt.Errorf("acquired %v: %w", acquired, err)
		}
		_, released, err := store.Settle(ctx, &s)
		if err != nil || !released {
			return fmt.Errorf("released %v: %w", released, err)
		}
		return nil
	}
}

func resultHandler(context.Context, lock.Key) (string, error) { return "done", nil }
