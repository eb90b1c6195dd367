//go:build !demo

package main

import (
	"context"

	"github.com/alecthomas/kong"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/invoke"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/operate"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/shell"
)

type cli struct {
	Demo        invoke.Demo         `cmd:"" help:"Show what the locks do: one S3 function in several environments, with duplicates, a failure and a crash. Needs no AWS account."`
	Exec        shell.Exec          `cmd:"" help:"Run a command under a lock: one at a time for a name, or once for an event."`
	Invoke      invoke.Command      `cmd:"" help:"Run a Lambda function on this machine in several environments, and deliver events to it, all at the same time."`
	CreateTable operate.CreateTable `cmd:"" help:"Create the DynamoDB lock table with its TTL attribute, and wait until it can be used."`
	ServeTable  operate.ServeTable  `cmd:"" help:"Serve a lock table in memory to functions that run elsewhere on this machine. Needs no AWS account."`

	List     operate.List     `cmd:"" help:"List the locks of a store, with their holders."`
	Show     operate.Show     `cmd:"" help:"Show a lock: who holds it, and which events are remembered as completed."`
	Watch    operate.Watch    `cmd:"" help:"Print what happens to the locks of a store, until Ctrl-C."`
	Release  operate.Release  `cmd:"" help:"Take a lock from its holder."`
	Forget   operate.Forget   `cmd:"" help:"Make an event run again that was completed, or whose run was interrupted."`
	Complete operate.Complete `cmd:"" help:"Say that the work of an event whose run was interrupted was done."`
	Explain  operate.Explain  `cmd:"" help:"Say which key functions take an event, and what the locks say of it."`
	Redrive  operate.Redrive  `cmd:"" help:"Empty a dead-letter queue: delete what was completed, and send back what was not."`
	Doctor   operate.Doctor   `cmd:"" help:"Check the store, and with --function a deployed function, for settings that lose locks or events."`

	Completion completionCmd `cmd:"" help:"Print what makes a shell complete commands and flags."`
	Man        manCmd        `cmd:"" help:"Print the manual page."`

	Version kong.VersionFlag `help:"Print the version, the Go version and the revision."`
}

// newCLI returns the commands. Those that take a context begin with base.
func newCLI(base context.Context) *cli { return &cli{Exec: shell.Exec{Base: base}} }
