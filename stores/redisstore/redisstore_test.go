package redisstore_test

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/redisstore"
)

// conform runs the suite on a store made of the clients.
func conform(t *testing.T, open func(clients ...redis.Scripter) driver.Store, clients ...*redis.Client) {
	var ahead atomic.Int64
	shifted := make([]redis.Scripter, len(clients))
	for i, c := range clients {
		shifted[i] = clock{c, &ahead}
		if c.Options().ClientName == "impatient" {
			shifted[i] = impatient{shifted[i]}
		}
	}
	store := open(shifted...)
	locktest.Run(t, locktest.Harness{
		Open:     func(*testing.T) driver.Store { return store },
		Majority: len(clients) > 1,
		Advance:  func(d time.Duration) { ahead.Add(int64(d)) },
		MakeNewer: func(t *testing.T, _ driver.Store, name string) {
			for _, c := range clients {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				if err := c.HSet(ctx, "lambdalock:"+name, "rowFormat", "2").Err(); err != nil {
					t.Log(err) // a node that is down
				}
			}
		},
	})
}

func TestConformance(t *testing.T) {
	open := func(c ...redis.Scripter) driver.Store { return must(redisstore.New(c[0])) }
	t.Run("miniredis", func(t *testing.T) { conform(t, open, newClient(t, newMini(t).Addr())) })
	t.Run("redis-server", func(t *testing.T) { conform(t, open, newClient(t, newServer(t).addr)) })
}

// openQuorum returns a Quorum that waits long, because the machine may be busy.
func openQuorum(c ...redis.Scripter) driver.Store {
	q := must(redisstore.NewQuorum(c...))
	q.SetTimeout(5 * time.Second)
	return q
}

func TestQuorumConformance(t *testing.T) {
	t.Run("three nodes", func(t *testing.T) {
		conform(t, openQuorum, newClient(t, newMini(t).Addr()), newClient(t, newMini(t).Addr()), newClient(t, newMini(t).Addr()))
	})
	t.Run("one of three is down", func(t *testing.T) {
		down := newMini(t)
		c := newClient(t, down.Addr())
		down.Close()
		conform(t, openQuorum, newClient(t, newMini(t).Addr()), c, newClient(t, newMini(t).Addr()))
	})
	t.Run("one of three is paused", func(t *testing.T) {
		paused := newServer(t)
		c := newClient(t, paused.addr)
		c.Options().ClientName = "impatient" // the test need not wait that long, hundreds of times
		paused.signal(syscall.SIGSTOP)
		conform(t, openQuorum, newClient(t, newMini(t).Addr()), newClient(t, newMini(t).Addr()), c)
	})
	t.Run("five nodes, two of them down", func(t *testing.T) {
		clients := make([]*redis.Client, 5)
		for i := range clients {
			m := newMini(t)
			clients[i] = newClient(t, m.Addr())
			if i < 2 {
				m.Close()
			}
		}
		conform(t, openQuorum, clients...)
	})
}
