package integration_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(silent{}) // it reports each connection to a server that is down
	if role := os.Getenv(roleVariable); role != "" {
		playRole(role)
	}
	code := m.Run()
	printSummary(os.Stdout)
	if code == 0 {
		// go-redis starts it when a program that imports it starts.
		clock := goleak.IgnoreTopFunction("github.com/redis/go-redis/v9/internal/pool.startGlobalTimeCache.func1")
		if err := goleak.Find(clock); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
