// Command lambdalock creates the lock table, runs Lambda functions locally under
// contention, and shows what the locks do.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/lambdalock/lambdalock/internal/demo"
)

type cli struct {
	Demo        demoCmd        `cmd:"" help:"Show what the locks do: one S3 function in several environments, duplicates, a failure, a crash. Needs nothing but this program."`
	Invoke      invokeCmd      `cmd:"" help:"Run a Lambda function locally in several environments and deliver events to it, all at once."`
	CreateTable createTableCmd `cmd:"" help:"Create the DynamoDB lock table, with its TTL attribute, and wait for it."`
}

func main() {
	if os.Getenv(demo.RoleVariable) != "" {
		demo.Function()
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	app := kong.Parse(&cli{},
		kong.Name("lambdalock"),
		kong.Description("Locks and event memory for AWS Lambda handlers."),
		kong.UsageOnError(),
		kong.BindTo(ctx, (*context.Context)(nil)))
	app.FatalIfErrorf(app.Run())
}
