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
	var account *awsAccount
	if table, bucket := os.Getenv("LAMBDALOCK_TABLE"), os.Getenv("LAMBDALOCK_BUCKET"); table != "" || bucket != "" {
		var err error
		if account, err = useAccount(context.Background(), table, bucket); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	if account != nil {
		account.bill.print()
	}
	printSummary(os.Stdout)
	if code == 0 && account == nil {
		// go-redis starts it when a program that imports it starts.
		clock := goleak.IgnoreTopFunction("github.com/redis/go-redis/v9/internal/pool.startGlobalTimeCache.func1")
		if err := goleak.Find(clock); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
