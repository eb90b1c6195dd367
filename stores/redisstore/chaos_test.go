package redisstore_test

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/redistest"
)

func freePort(t *testing.T) string {
	t.Helper()
	l := expect.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// beat writes the time to the primary again and again, so that a replica tells
// how far behind it is.
func beat(ctx context.Context, primary *atomic.Pointer[redistest.Server]) {
	for ctx.Err() == nil {
		c := redis.NewClient(&redis.Options{Addr: primary.Load().Addr, DialerRetries: 1})
		for c.Set(ctx, "beat", time.Now().UnixMicro(), 0).Err() == nil {
			_ = redistest.Sleep(ctx, 10*time.Millisecond)
		}
		_ = c.Close()
		_ = redistest.Sleep(ctx, 10*time.Millisecond)
	}
}

// TestChaosOfFailovers promotes a replica again and again that lacks up to a
// second of writes. Owners overlap and events run again only if what they
// rely on was written in that time, and fences rise in any case.
func TestChaosOfFailovers(t *testing.T) { // F24, F42, F56
	t.Parallel()
	redistest.ChaosTime(t)
	var primary atomic.Pointer[redistest.Server]
	port := freePort(t)
	primary.Store(redistest.NewServer(t, "--port", port))
	open := func() driver.Store {
		client := redis.NewClient(&redis.Options{
			DialerRetries: 1, DialerRetryTimeout: time.Millisecond,
			Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", primary.Load().Addr)
			},
		})
		t.Cleanup(func() { _ = client.Close() })
		return redistest.Must(redisstore.New(client))
	}
	redistest.Chaos(t, open, func(end time.Time) (lost []redistest.Loss) {
		beats, stop := context.WithCancel(t.Context())
		var heart sync.WaitGroup
		defer heart.Wait()
		defer stop()
		heart.Go(func() { beat(beats, &primary) })
		for time.Now().Before(end) {
			next := freePort(t)
			replica := redistest.NewServer(t, "--port", next, "--replicaof", "127.0.0.1 "+port, "--repl-diskless-sync-delay", "0")
			admin := redistest.NewClient(t, replica.Addr)
			for until := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
				if admin.InfoMap(t.Context(), "replication").Item("Replication", "master_link_status") == "up" {
					break
				}
				if time.Now().After(until) {
					t.Error("the replica does not follow")
					return lost
				}
			}
			time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond)
			expect.OK(t, admin.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err())
			time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
			primary.Load().Stop()
			expect.OK(t, admin.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
			// The replica may have been behind already when it was cut off.
			last, err := admin.Get(t.Context(), "beat").Int64()
			if err != nil {
				t.Error(err)
			}
			primary.Store(replica)
			port = next
			lost = append(lost, redistest.Loss{From: time.UnixMicro(last), To: time.Now()})
		}
		return lost
	})
}
