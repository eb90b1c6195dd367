package integration_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/locktest"
)

// durable makes a server write each change to disk before it answers.
var durable = []string{"--appendonly", "yes", "--appendfsync", "always"}

// TestRedisTrouble lets eight workers pass three names around while something
// happens to the server again and again. No two hold a name at the same time,
// and every turn is taken.
func TestRedisTrouble(t *testing.T) {
	for name, trouble := range map[string]func(context.Context, *servers.Server, *redis.Client) error{
		"restart": func(_ context.Context, s *servers.Server, _ *redis.Client) error {
			s.Kill()
			return s.Restart()
		},
		"scripts are flushed": func(ctx context.Context, _ *servers.Server, c *redis.Client) error {
			return c.ScriptFlush(ctx).Err()
		},
		"connections are killed": func(ctx context.Context, _ *servers.Server, c *redis.Client) error {
			return c.ClientKillByFilter(ctx, "TYPE", "normal", "SKIPME", "yes").Err()
		},
		"pause": func(ctx context.Context, s *servers.Server, _ *redis.Client) error {
			return errors.Join(s.Pause(), delayFor(ctx, 300*time.Millisecond), s.Resume())
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := servers.Redis(t, durable...)
			client := expect.Value(newRedis(s.Endpoint))(t)
			t.Cleanup(func() { _ = client.Close() })
			passThroughTrouble(t, place{"redis", []string{s.Endpoint}}, func() error { return trouble(t.Context(), &s, client) })
		})
	}
}

// TestQuorumTrouble does the same with a quorum of three servers, of which
// another one is down or paused each time.
func TestQuorumTrouble(t *testing.T) {
	for name, trouble := range map[string]func(context.Context, *servers.Server) error{
		"one of three restarts": func(ctx context.Context, s *servers.Server) error {
			s.Kill()
			return errors.Join(delayFor(ctx, 100*time.Millisecond), s.Restart())
		},
		"one of three is paused": func(ctx context.Context, s *servers.Server) error {
			return errors.Join(s.Pause(), delayFor(ctx, 300*time.Millisecond), s.Resume())
		},
	} {
		t.Run(name, func(t *testing.T) {
			nodes, p := startQuorum(t, durable...)
			n := 0
			passThroughTrouble(t, p, func() error {
				n++
				return trouble(t.Context(), &nodes[n%len(nodes)])
			})
		})
	}
}

// passThroughTrouble passes names around, and makes trouble each time that a
// tenth of the turns was taken.
func passThroughTrouble(t *testing.T, p place, trouble func() error) {
	total := 3000
	if testing.Short() {
		total = 300
	}
	var left, taken atomic.Int64
	left.Store(int64(total))
	tenth := make(chan struct{}, 10)
	var mu sync.Mutex
	var holds []locktest.Hold
	var workers, troubles sync.WaitGroup
	const lease = 10 * time.Second
	locker := newLocker(t, p.store(t, nil), lock.Options{Lease: lock.FixedLease(lease), MaxWait: time.Minute})
	for i := range 8 {
		workers.Go(func() {
			for n := left.Add(-1); n >= 0; n = left.Add(-1) {
				h := locktest.Hold{Name: fmt.Sprint("passed/", n%3), Holder: fmt.Sprint("worker ", i)}
				expect.OK(t, workUnder(locker, &h, lease))
				mu.Lock()
				holds = append(holds, h)
				mu.Unlock()
				if taken.Add(1)%int64(total/10) == 0 {
					tenth <- struct{}{}
				}
			}
		})
	}
	troubles.Go(func() {
		for range tenth {
			expect.OK(t, trouble())
		}
	})
	workers.Wait()
	close(tenth)
	troubles.Wait()
	if len(holds) != total {
		t.Errorf("%d holds, want %d", len(holds), total)
	}
	expect.OK(t, locktest.CheckHistory(holds))
}
