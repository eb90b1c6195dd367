package redistest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
)

// Conform runs the suite on a store made of the clients.
func Conform(t *testing.T, open func(clients ...redis.Scripter) driver.Store, clients ...*redis.Client) {
	var ahead atomic.Int64
	shifted := make([]redis.Scripter, len(clients))
	for i, c := range clients {
		clock := Clock{c, &ahead}
		shifted[i] = clock
		if c.Options().ClientName == "impatient" {
			shifted[i] = impatient{clock}
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
