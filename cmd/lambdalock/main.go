// Command lambdalock creates the lock table, runs Lambda functions locally
// under contention, and shows what the locks do.
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
	Demo        demoCmd        `cmd:"" help:"Show what the locks do: one S3 function in several environments, with duplicates, a failure and a crash. Needs no AWS account."`
	Invoke      invokeCmd      `cmd:"" help:"Run a Lambda function on this machine in several environments, and deliver events to it, all at once."`
	CreateTable createTableCmd `cmd:"" help:"Create the DynamoDB lock table with its TTL attribute, and wait until it can be used."`

	Version kong.VersionFlag `help:"Print the version, the Go version and the revision."`
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
		kong.Description("Distributed locks and idempotency for Go Lambda handlers."),
		kong.UsageOnError(),
		kong.Vars{"version": version()},
		kong.BindTo(ctx, (*context.Context)(nil)))
	err := app.Run()
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		err = interruption{}
	}
	app.FatalIfErrorf(err)
}

// interruption is the error of a run that a signal ended. Shells expect 128
// plus the number of the signal as the status, which for Ctrl-C is 130.
type interruption struct{}

func (interruption) Error() string { return "interrupted" }

// ExitCode returns the status with which kong ends the program.
func (interruption) ExitCode() int { return 128 + int(syscall.SIGINT) }
