package redisstore_test

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	minserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/stores/redisstore"
)

// newCluster returns two servers that both name one of them as the primary of
// all keys: the first, or the second once second is set.
func newCluster(t *testing.T) (minis [2]*miniredis.Miniredis, second *atomic.Bool) {
	t.Helper()
	second = &atomic.Bool{}
	minis = [2]*miniredis.Miniredis{newMini(t), newMini(t)}
	for _, m := range minis {
		m.Server().SetPreHook(func(c *minserver.Peer, command string, args ...string) bool {
			if command != "CLUSTER" || !strings.EqualFold(args[0], "SLOTS") {
				return false
			}
			primary := minis[0]
			if second.Load() {
				primary = minis[1]
			}
			host, port, _ := net.SplitHostPort(primary.Addr())
			n, _ := strconv.Atoi(port)
			c.WriteLen(1)
			c.WriteLen(3)
			c.WriteInt(0)
			c.WriteInt(16383)
			c.WriteLen(3)
			c.WriteBulk(host)
			c.WriteInt(n)
			c.WriteBulk(strconv.Itoa(n))
			return true
		})
	}
	return minis, second
}

// TestClusterFailover shows that the store finds the new primary as soon as the
// old one refuses connections. The client alone would look for it 10 s later,
// and later versions of it after a minute.
func TestClusterFailover(t *testing.T) { // F42
	t.Parallel()
	minis, second := newCluster(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{minis[0].Addr(), minis[1].Addr()}, ContextTimeoutEnabled: true, DialerRetries: 1,
	})
	t.Cleanup(func() { _ = client.Close() })
	store := must(redisstore.New(client))
	mustAcquire(t, store, claim("n"))
	minis[0].Close()
	second.Store(true)
	for end := time.Now().Add(5 * time.Second); ; {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, ok, err := store.Acquire(ctx, claim("n"))
		cancel()
		if ok {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("still %v", err)
		}
	}
}

// TestRedirection follows a slot that has moved to another server.
func TestRedirection(t *testing.T) {
	t.Parallel()
	minis, second := newCluster(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{minis[0].Addr()}, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	store := must(redisstore.New(client))
	mustAcquire(t, store, claim("n"))
	second.Store(true)
	minis[0].Server().SetPreHook(func(c *minserver.Peer, command string, _ ...string) bool {
		if command != "EVALSHA" && command != "EVAL" {
			return false
		}
		c.WriteError("MOVED 1 " + minis[1].Addr())
		return true
	})
	mustAcquire(t, store, claim("n"))
}
