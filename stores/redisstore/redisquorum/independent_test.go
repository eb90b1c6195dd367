package redisquorum_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	minserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/redistest"
	"github.com/lambdalock/lambdalock/stores/redisstore/redisquorum"
)

// TestOneServerIsNoQuorum gives servers at several addresses, which New
// cannot tell apart, the same run_id.
func TestOneServerIsNoQuorum(t *testing.T) {
	t.Parallel()
	const denied = ""
	for name, c := range map[string]struct {
		ids  [3]string
		same int // which is the same as the first; 0: none
	}{
		"independent":          {[3]string{"a1", "b2", "c3"}, 0},
		"one":                  {[3]string{"a1", "a1", "a1"}, 1},
		"two of three":         {[3]string{"a1", "b2", "a1"}, 2},
		"may not tell":         {[3]string{denied, denied, denied}, 0},
		"tell memory, not ids": {[3]string{"-", "-", "-"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var clients []redis.Scripter
			var addresses []string
			for _, id := range c.ids {
				mini := redistest.NewMini(t)
				addresses = append(addresses, mini.Addr())
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
				clients = append(clients, redistest.NewClient(t, mini.Addr()))
			}
			q := openQuorum(clients...).(*redisquorum.Store)
			_, ok, err := q.Acquire(t.Context(), redistest.Claim("n"))
			checked := q.Check(t.Context())
			for _, err := range []error{err, checked} {
				names := err != nil && strings.Contains(err.Error(), addresses[0]+" and Redis "+addresses[c.same])
				if ok != (c.same == 0) || errors.As(err, new(*driver.ConfigError)) == ok || names == ok {
					t.Errorf("acquired %v, error %v, want that it names %d and 0 of %q", ok, err, c.same, addresses)
				}
			}
		})
	}
	t.Run("redis-server", func(t *testing.T) {
		t.Parallel()
		addr := redistest.NewServer(t).Addr
		clients := []redis.Scripter{redistest.Clock{Scripter: redistest.NewClient(t, addr), Ahead: new(atomic.Int64)}, redistest.Clock{Scripter: redistest.NewClient(t, addr), Ahead: new(atomic.Int64)}, redistest.NewClient(t, redistest.NewServer(t).Addr)}
		q := openQuorum(clients...).(*redisquorum.Store)
		if err := q.Check(t.Context()); !errors.As(err, new(*driver.ConfigError)) {
			t.Errorf("error %v, want that it is refused", err)
		}
	})
}

// TestWrongClients has clients that make no quorum: the constructor says what
// to change.
func TestWrongClients(t *testing.T) {
	t.Parallel()
	good := func(addr string) redis.Scripter { return redis.NewClient(&redis.Options{Addr: addr}) }
	for name, c := range map[string]struct {
		clients []redis.Scripter
		want    string
	}{
		"none":        {nil, "0 clients"},
		"one":         {[]redis.Scripter{good("h:1")}, "1 clients"},
		"four":        {[]redis.Scripter{good("h:1"), good("h:2"), good("h:3"), good("h:4")}, "4 clients"},
		"one is nil":  {[]redis.Scripter{good("h:1"), nil, good("h:3")}, "nil"},
		"same server": {[]redis.Scripter{good("h:1"), good("h:2"), good("h:1")}, "two clients of Redis h:1"},
	} {
		_, err := redisquorum.New(c.clients...)
		if e := (*driver.ConfigError)(nil); !errors.As(err, &e) || !strings.Contains(e.Reason, c.want) {
			t.Errorf("%s: error %v, want a ConfigError with %q", name, err, c.want)
		}
	}
}
