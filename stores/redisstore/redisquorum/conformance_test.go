package redisquorum_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/redistest"
	"github.com/lambdalock/lambdalock/stores/redisstore/redisquorum"
)

// openQuorum returns a Quorum that waits long, because the machine may be busy.
func openQuorum(c ...redis.Scripter) driver.Store {
	q := redistest.Must(redisquorum.New(c...))
	q.SetTimeout(5 * time.Second)
	return q
}

func TestQuorumConformance(t *testing.T) {
	t.Run("three nodes", func(t *testing.T) {
		redistest.Conform(t, openQuorum, redistest.NewClient(t, redistest.NewMini(t).Addr()), redistest.NewClient(t, redistest.NewMini(t).Addr()), redistest.NewClient(t, redistest.NewMini(t).Addr()))
	})
	t.Run("one of three is down", func(t *testing.T) {
		down := redistest.NewMini(t)
		c := redistest.NewClient(t, down.Addr())
		down.Close()
		redistest.Conform(t, openQuorum, redistest.NewClient(t, redistest.NewMini(t).Addr()), c, redistest.NewClient(t, redistest.NewMini(t).Addr()))
	})
	t.Run("one of three is paused", func(t *testing.T) {
		paused := redistest.NewServer(t)
		c := redistest.NewClient(t, paused.Addr)
		c.Options().ClientName = "impatient" // the test need not wait that long, hundreds of times
		paused.Signal(syscall.SIGSTOP)
		redistest.Conform(t, openQuorum, redistest.NewClient(t, redistest.NewMini(t).Addr()), redistest.NewClient(t, redistest.NewMini(t).Addr()), c)
	})
	t.Run("five nodes, two of them down", func(t *testing.T) {
		clients := make([]*redis.Client, 5)
		for i := range clients {
			m := redistest.NewMini(t)
			clients[i] = redistest.NewClient(t, m.Addr())
			if i < 2 {
				m.Close()
			}
		}
		redistest.Conform(t, openQuorum, clients...)
	})
}
