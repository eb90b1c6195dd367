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
				mini := redistest.NewMini(t)
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
			if c.refuses != errors.As(err, new(*driver.ConfigError)) || c.refuses != errors.As(checked, new(*driver.ConfigError)) || c.refuses == ok {
				t.Errorf("acquired %v, error %v, check %v, want refused %v", ok, err, checked, c.refuses)
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
