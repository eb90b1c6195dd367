package redisstore_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/redistest"
)

func TestConformance(t *testing.T) {
	open := func(c ...redis.Scripter) driver.Store { return redistest.Must(redisstore.New(c[0])) }
	t.Run("miniredis", func(t *testing.T) { redistest.Conform(t, open, redistest.NewClient(t, redistest.NewMini(t).Addr())) })
	t.Run("redis-server", func(t *testing.T) { redistest.Conform(t, open, redistest.NewClient(t, redistest.NewServer(t).Addr)) })
}
