package redisstore_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	minserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/redistest"
)

// newCluster returns two servers that both name one of them as the primary of
// all keys: the first, or the second once second is set.
func newCluster(t *testing.T) (minis [2]*miniredis.Miniredis, second *atomic.Bool) {
	t.Helper()
	second = &atomic.Bool{}
	minis = [2]*miniredis.Miniredis{redistest.NewMini(t), redistest.NewMini(t)}
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
	store := redistest.Must(redisstore.New(client))
	redistest.MustAcquire(t, store, redistest.Claim("n"))
	minis[0].Close()
	second.Store(true)
	for end := time.Now().Add(5 * time.Second); ; {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, ok, err := store.Acquire(ctx, redistest.Claim("n"))
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
	store := redistest.Must(redisstore.New(client))
	redistest.MustAcquire(t, store, redistest.Claim("n"))
	second.Store(true)
	minis[0].Server().SetPreHook(func(c *minserver.Peer, command string, _ ...string) bool {
		if command != "EVALSHA" && command != "EVAL" {
			return false
		}
		c.WriteError("MOVED 1 " + minis[1].Addr())
		return true
	})
	redistest.MustAcquire(t, store, redistest.Claim("n"))
}

// TestRedirectedEnd ends a lock on the server to which its slot has moved. The
// cluster client repeats what it has redirected, so a refusal may mean that an
// earlier attempt was applied.
func TestRedirectedEnd(t *testing.T) { // F5
	t.Parallel()
	minis, _ := newCluster(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{minis[0].Addr()}, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	store, target := redistest.Must(redisstore.New(client)), redistest.Must(redisstore.New(redistest.NewClient(t, minis[1].Addr())))
	c := redistest.Claim("n")
	redistest.MustAcquire(t, target, c)
	redistest.MustRelease(t, target, c, nil)
	minis[0].Server().SetPreHook(func(c *minserver.Peer, command string, _ ...string) bool {
		if command == "EVALSHA" || command == "EVAL" {
			c.WriteError("MOVED 1 " + minis[1].Addr())
		}
		return command == "EVALSHA" || command == "EVAL"
	})
	redistest.MustRelease(t, store, c, nil)
}

// TestClusterPermissions uses a cluster client whose user has nothing but what
// the hints of denials name, while a slot moves to another server.
func TestClusterPermissions(t *testing.T) { // F10, F40
	t.Parallel()
	minis := [2]*miniredis.Miniredis{redistest.NewMini(t), redistest.NewMini(t)}
	const always = "evalsha eval time hmget hgetall hset hdel pexpireat "
	var allowed atomic.Value
	allowed.Store(always)
	for i, m := range minis {
		m.Server().SetPreHook(func(c *minserver.Peer, command string, args ...string) bool {
			full := strings.ToLower(command)
			if full == "cluster" {
				full += "|" + strings.ToLower(args[0])
			}
			switch {
			case full == "hello" || full == "client": // of every connection
				return false
			case !slices.Contains(strings.Fields(allowed.Load().(string)), full):
				c.WriteError("NOPERM User u has no permissions to run the '" + full + "' command")
			case full == "asking":
				c.WriteOK()
			case i == 0 && strings.HasPrefix(full, "eval"):
				c.WriteError("ASK 1 " + minis[1].Addr())
			default:
				return false
			}
			return true
		})
	}
	acquire := func() error {
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{minis[0].Addr()}, ContextTimeoutEnabled: true})
		t.Cleanup(func() { _ = client.Close() })
		_, _, err := redistest.Must(redisstore.New(client)).Acquire(t.Context(), redistest.Claim("n"))
		return err
	}
	var e *driver.Error
	if err := acquire(); !errors.As(err, &e) || !e.Lasting || e.Action != "cluster|slots" {
		t.Fatalf("error %v, want a permanent one that names cluster|slots", err)
	}
	allowed.Store(always + strings.ReplaceAll(e.Hint, "+", ""))
	expect.OK(t, acquire())
}

// seen is a hook, such as one for traces, that counts what it sees.
type seen struct{ scripts, others atomic.Int32 }

func (*seen) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*seen) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (s *seen) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") {
			s.scripts.Add(1)
		} else {
			s.others.Add(1)
		}
		return next(ctx, cmd)
	}
}

// TestHooks shows that the hooks of a client see the requests of its Stores.
func TestHooks(t *testing.T) {
	t.Parallel()
	minis, _ := newCluster(t)
	var hook seen
	client := redis.NewClient(&redis.Options{Addr: minis[0].Addr()})
	client.AddHook(&hook)
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{minis[0].Addr()}, ContextTimeoutEnabled: true})
	cluster.OnNewNode(func(node *redis.Client) { node.AddHook(&hook) })
	for name, client := range map[string]interface {
		redis.UniversalClient
		redis.Scripter
	}{"client": client, "cluster": cluster} {
		t.Cleanup(func() { _ = client.Close() })
		for range 2 { // the second Store has the client of the first one
			store := redistest.Must(redisstore.New(client))
			hook.scripts.Store(0)
			expect.Must(t, store.Check(t.Context()))
			if hook.scripts.Swap(0) == 0 {
				t.Errorf("%s: a hook has not seen the request", name)
			}
		}
		hook.others.Store(0)
		if err := client.Ping(t.Context()).Err(); err != nil || hook.others.Load() == 0 {
			t.Errorf("%s: a PING is seen %d times, error %v", name, hook.others.Load(), err)
		}
	}
}

// TestNodeOfACluster lists the rows of a server that has half of the slots of a
// cluster: a list that has only some of the locks is an error.
func TestNodeOfACluster(t *testing.T) { // F42
	t.Parallel()
	for name, c := range map[string]struct {
		info    string // "": denied
		part    bool   // it has a part of the slots
		refused bool
	}{
		"a node":             {"cluster_enabled:1\r\n", true, true},
		"a node, no +info":   {"", true, true},
		"the only node":      {"cluster_enabled:1\r\n", false, false},
		"no cluster":         {"cluster_enabled:0\r\n", false, false},
		"server, no +info":   {"", false, false},
		"says nothing of it": {"redis_version:6.0.0\r\n", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := redistest.NewMini(t)
			store := redistest.Must(redisstore.New(redistest.NewClient(t, m.Addr())))
			redistest.MustAcquire(t, store, redistest.Claim("n"))
			m.Server().SetPreHook(func(p *minserver.Peer, command string, args ...string) bool {
				switch {
				case command == "INFO" && c.info == "":
					p.WriteError("NOPERM this user has no permissions to run the 'info' command")
				case command == "INFO":
					p.WriteBulk(c.info)
				case strings.HasPrefix(command, "EVAL") && c.part && args[2][len(args[2])-1]%2 == 1:
					p.WriteError("MOVED 3999 127.0.0.1:6381")
				default:
					return false
				}
				return true
			})
			rows := 0
			var err error
			for _, err = range store.Rows(t.Context(), "") {
				if err == nil {
					rows++
				}
			}
			if refused := errors.As(err, new(*driver.ConfigError)); refused != c.refused || !refused && (err != nil || rows != 1) {
				t.Errorf("%d rows, error %v, want refused %v", rows, err, c.refused)
			}
		})
	}
}

// TestClusterIsDown lists the rows of a server without rows whose cluster is
// down: nothing is known of the locks of the other servers.
func TestClusterIsDown(t *testing.T) {
	t.Parallel()
	m := redistest.NewMini(t)
	store := redistest.Must(redisstore.New(redistest.NewClient(t, m.Addr())))
	m.Server().SetPreHook(func(p *minserver.Peer, command string, _ ...string) bool {
		switch {
		case command == "INFO":
			p.WriteBulk("cluster_enabled:1\r\n")
		case strings.HasPrefix(command, "EVAL"):
			p.WriteError("CLUSTERDOWN Hash slot not served")
		default:
			return false
		}
		return true
	})
	var err error
	for _, err = range store.Rows(t.Context(), "") {
	}
	var e *driver.Error
	if !errors.As(err, &e) || e.Lasting || strings.Count(e.Error(), m.Addr()) != 1 || !strings.Contains(e.Error(), "CLUSTERDOWN") {
		t.Errorf("the error is %v", err)
	}
}
