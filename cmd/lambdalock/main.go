// Command lambdalock creates the lock table, runs Lambda functions locally
// under contention, and shows what the locks do.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/demo"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/invoke"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/operate"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/shell"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/storeurl"
)

type cli struct {
	Demo        invoke.Demo         `cmd:"" help:"Show what the locks do: one S3 function in several environments, with duplicates, a failure and a crash. Needs no AWS account."`
	Exec        shell.Exec          `cmd:"" help:"Run a command under a lock: one at a time for a name, or once for an event."`
	Invoke      invoke.Command      `cmd:"" help:"Run a Lambda function on this machine in several environments, and deliver events to it, all at the same time."`
	CreateTable operate.CreateTable `cmd:"" help:"Create the DynamoDB lock table with its TTL attribute, and wait until it can be used."`

	List    operate.List    `cmd:"" help:"List the locks of a store, with their holders."`
	Show    operate.Show    `cmd:"" help:"Show a lock: who holds it, and which events are remembered as completed."`
	Watch   operate.Watch   `cmd:"" help:"Print what happens to the locks of a store, until Ctrl-C."`
	Release operate.Release `cmd:"" help:"Take a lock from its holder."`
	Forget  operate.Forget  `cmd:"" help:"Make a completed event run again."`
	Explain operate.Explain `cmd:"" help:"Say which key functions take an event, and what the locks say of it."`

	Completion completionCmd `cmd:"" help:"Print what makes a shell complete commands and flags."`
	Man        manCmd        `cmd:"" help:"Print the manual page."`

	Version kong.VersionFlag `help:"Print the version, the Go version and the revision."`
}

func main() {
	if os.Getenv(demo.RoleVariable) != "" {
		demo.Function()
		return
	}
	var ctx context.Context // of a command that asks for one; exec passes signals on
	parser := kong.Must(&cli{},
		kong.Name("lambdalock"),
		kong.Description("Distributed locks and idempotency for Go Lambda handlers."),
		kong.ShortUsageOnError(),
		kong.Exit(exit),
		kong.KindMapper(reflect.String, kong.MapperFunc(asTyped)),
		kong.NamedMapper("wait", kong.MapperFunc(shell.DecodeWait)),
		kong.Vars{"version": version(), "storeForms": storeurl.Forms},
		kong.BindSingletonProvider(func() context.Context {
			ctx = untilInterrupted()
			return ctx
		}))
	app, err := parser.Parse(os.Args[1:])
	if err != nil {
		parser.Stdout = os.Stderr // the usage, which nobody asked for
		parser.FatalIfErrorf(err)
	}
	err = app.Run()
	if status := shell.ExitStatus(0); errors.As(err, &status) {
		os.Exit(int(status))
	}
	if err != nil && ctx != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		err = interruption{}
	}
	if err != nil {
		app.FatalIfErrorf(spoken{err})
	}
}

// spoken is an error that is printed after the program's name.
type spoken struct{ error }

func (e spoken) Error() string { return console.Plain(e.error) }
func (e spoken) Unwrap() error { return e.error }

// asTyped takes a text with all its bytes. Kong's own mapper sends it through
// JSON, which has no bytes that are not UTF-8: two names of files became one.
func asTyped(ctx *kong.DecodeContext, target reflect.Value) error {
	t, err := ctx.Scan.PopValue("string")
	if err == nil {
		target.SetString(fmt.Sprint(t.Value))
	}
	return err
}

// untilInterrupted returns a context that ends with the first SIGINT or
// SIGTERM. The second one ends the process.
func untilInterrupted() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx
}

// exit ends the program. A wrong flag has the status of sysexits(3), instead of
// kong's.
func exit(status int) {
	if status == 80 {
		status = console.StatusUsage
	}
	os.Exit(status)
}

// interruption is the error of a run that a signal ended. Shells expect 128
// plus the number of the signal as the status, which for Ctrl-C is 130.
type interruption struct{}

func (interruption) Error() string { return "interrupted" }

// ExitCode returns the status with which kong ends the program.
func (interruption) ExitCode() int { return 128 + int(syscall.SIGINT) }
