package redisquorum_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/redistest"
)

// TestChaosOfOutdatedServers restarts one of three servers again and again with
// what it had up to a second, six events or a minute ago. A majority keeps its
// data, so nothing is lost.
func TestChaosOfOutdatedServers(t *testing.T) { // F24, F42, F56
	t.Parallel()
	redistest.ChaosTime(t)
	nodes := []*redistest.Server{redistest.NewServer(t), redistest.NewServer(t), redistest.NewServer(t)}
	var clients []redis.Scripter
	for _, n := range nodes {
		clients = append(clients, redistest.NewClient(t, n.Addr))
	}
	open := func() driver.Store { return openQuorum(clients...) }
	redistest.Chaos(t, open, func(end time.Time) []redistest.Loss {
		quiet := time.Now() // until then, no server goes down
		for n := 0; time.Now().Before(end); n++ {
			node := nodes[n%3]
			back := []time.Duration{time.Second, 0, time.Second, 10 * time.Second, time.Minute}[rand.IntN(5)]
			if time.Until(end) < back+10*time.Second {
				back = time.Second
			}
			time.Sleep(max(time.Until(quiet), 0))
			data, err := image(node)
			if err != nil {
				t.Error(err)
				return nil
			}
			time.Sleep(time.Duration(rand.Int64N(int64(back) + 1)))
			if back == 0 {
				data = nil // it only misses what happens meanwhile
			}
			if err := restart(node, redistest.ChaosLease+100*time.Millisecond, data); err != nil {
				t.Error(err)
				return nil
			}
			quiet = time.Now().Add(500 * time.Millisecond)
		}
		return nil
	})
}

// image returns what the server has stored.
func image(s *redistest.Server) ([]byte, error) {
	c := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer c.Close()
	if err := c.Save(context.Background()).Err(); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(filepath.Dir(s.Addr), "dump.rdb"))
}

// restart kills the server and starts it later with that data, or with what it
// has stored now.
func restart(s *redistest.Server, down time.Duration, data []byte) error {
	if data == nil {
		var err error
		if data, err = image(s); err != nil {
			return err
		}
	}
	s.Stop()
	time.Sleep(down)
	if err := os.WriteFile(filepath.Join(filepath.Dir(s.Addr), "dump.rdb"), data, 0o600); err != nil {
		return err
	}
	s.Start()
	return nil
}
