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
		const pool = "github.com/redis/go-redis/v9/internal/pool."
		// go-redis starts it when a program that imports it starts.
		clock := goleak.IgnoreTopFunction(pool + "startGlobalTimeCache.func1")
		// It dials a server that is down once a second, and looks only then whether
		// its client was closed.
		dials := goleak.IgnoreAnyFunction(pool + "(*ConnPool).tryDial")
		if err := goleak.Find(clock, dials); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
