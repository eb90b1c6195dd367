package redisquorum_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/internal/robustness/traffic"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/redistest"
	"github.com/lambdalock/lambdalock/stores/redisstore/redisquorum"
)

// metered is a hook that counts what a client sends.
type metered struct{ traffic.Meter }

func (m *metered) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		m.Connect()
		return next(ctx, network, addr)
	}
}

func (m *metered) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		defer m.Begin(cmd.Name(), 1)()
		return next(ctx, cmd)
	}
}

func (*metered) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestTrafficOfAServer compares all that each server of a quorum gets, once it
// is connected: one request of each lock for each step, all at the same time.
func TestTrafficOfAServer(t *testing.T) { // F42
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Hour) }) // what is under way arrives
		var meters [3]metered
		var clients []redis.Scripter
		for i := range meters {
			client := distant(t, redistest.NewMachine(t), 10*time.Millisecond)
			client.AddHook(&meters[i])
			clients = append(clients, client)
		}
		q := redistest.Must(redisquorum.New(clients...))
		claims := make([]*driver.Claim, 4)
		for round := range 3 {
			for i := range claims {
				claims[i] = redistest.Claim(fmt.Sprint("n", i))
			}
			for step, request := range []func(*driver.Claim) (driver.Row, bool, error){
				func(c *driver.Claim) (driver.Row, bool, error) { return q.Acquire(t.Context(), c) },
				func(c *driver.Claim) (driver.Row, bool, error) { return q.Renew(t.Context(), redistest.Renewal(c)) },
				func(c *driver.Claim) (driver.Row, bool, error) { return q.Settle(t.Context(), redistest.Settlement(c)) },
			} {
				var all sync.WaitGroup
				for _, c := range claims {
					all.Go(func() {
						if _, ok, err := request(c); !ok || err != nil {
							t.Errorf("step %d: applied %v, error %v", step, ok, err)
						}
					})
				}
				all.Wait()
				for i := range meters {
					if got := meters[i].Take(); round > 0 && got != "evalsha 4×1, 4 at once" {
						t.Errorf("round %d, step %d, server %d: %s", round, step, i, got)
					}
				}
			}
		}
	})
}
