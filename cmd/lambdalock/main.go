// Command lambdalock creates the lock table, runs Lambda functions locally under
// contention, and shows what the locks do.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/demo"
)

type cli struct {
	Demo        demoCmd        `cmd:"" help:"Show what the locks do: one S3 function in several environments, duplicates, a failure, a crash. Needs nothing but this program."`
	Invoke      invokeCmd      `cmd:"" help:"Run a Lambda function locally in several environments and deliver events to it, all at once."`
	CreateTable createTableCmd `cmd:"" help:"Create the DynamoDB lock table, with its TTL attribute, and wait for it."`

	Version kong.VersionFlag `help:"Print version, Go version and revision."`
}

func main() {
	if os.Getenv(demo.RoleVariable) != "" {
		demo.Function()
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for anything
	app := kong.Parse(&cli{},
		kong.Name("lambdalock"),
		kong.Description("Locks and event memory for AWS Lambda handlers."),
		kong.UsageOnError(),
		kong.Vars{"version": version()},
		kong.BindTo(ctx, (*context.Context)(nil)))
	err := app.Run()
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		err = &stopped{}
	}
	app.FatalIfErrorf(err)
}

// stopped is the end by a signal. Shells expect 128 and the number of the signal,
// of which 130 for Ctrl-C is the one that is asked for.
type stopped struct{}

func (*stopped) Error() string { return "interrupted" }

// ExitCode is the status with which kong ends the program.
func (*stopped) ExitCode() int { return 128 + int(syscall.SIGINT) }
