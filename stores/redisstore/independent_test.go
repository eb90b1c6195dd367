package redisstore_test

import (
	"errors"
	"sync/atomic"
	"testing"

	minserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore"
)

// TestOneServerIsNoQuorum gives servers at several addresses, which NewQuorum
// cannot tell apart, the same run_id.
func TestOneServerIsNoQuorum(t *testing.T) {
	t.Parallel()
	const denied = ""
	for name, c := range map[string]struct {
		ids     [3]string
		refuses bool
	}{
		"independent":          {[3]string{"a1", "b2", "c3"}, false},
		"one":                  {[3]string{"a1", "a1", "a1"}, true},
		"two of three":         {[3]string{"a1", "b2", "a1"}, true},
		"may not tell":         {[3]string{denied, denied, denied}, false},
		"tell memory, not ids": {[3]string{"-", "-", "-"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var clients []redis.Scripter
			for _, id := range c.ids {
				mini := newMini(t)
				mini.Server().SetPreHook(func(p *minserver.Peer, command string, _ ...string) bool {
					if command != "INFO" {
						return false
					}
					if id == denied {
						p.WriteError("NOPERM User default has no permissions to run the 'info' command")
					} else {
						p.WriteBulk("maxmemory:0\r\nmaxmemory_policy:noeviction\r\nrun_id:" + id + "\r\n")
					}
					return true
				})
				clients = append(clients, newClient(t, mini.Addr()))
			}
			q := openQuorum(clients...).(*redisstore.Quorum)
			_, ok, err := q.Acquire(t.Context(), claim("n"))
			checked := q.Check(t.Context())
			if c.refuses != errors.As(err, new(*driver.ConfigError)) || c.refuses != errors.As(checked, new(*driver.ConfigError)) || c.refuses == ok {
				t.Errorf("acquired %v, error %v, check %v, want refused %v", ok, err, checked, c.refuses)
			}
		})
	}
	t.Run("redis-server", func(t *testing.T) {
		t.Parallel()
		addr := newServer(t).addr
		clients := []redis.Scripter{clock{newClient(t, addr), new(atomic.Int64)}, clock{newClient(t, addr), new(atomic.Int64)}, newClient(t, newServer(t).addr)}
		q := openQuorum(clients...).(*redisstore.Quorum)
		if err := q.Check(t.Context()); !errors.As(err, new(*driver.ConfigError)) {
			t.Errorf("error %v, want that it is refused", err)
		}
	})
}
