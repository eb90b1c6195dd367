// Command lambdalock creates the lock table, runs Lambda functions locally
// under contention, and shows what the locks do.
package main

import (
	"context"
	"os"

	"github.com/alecthomas/kong"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/demo"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/shell"
)

func main() {
	if os.Getenv(demo.RoleVariable) != "" {
		demo.Function()
		return
	}
	run(context.Background())
}

// run runs the command with a context that exec begins with.
func run(base context.Context) {
	console.Run(newCLI(base), kong.NamedMapper("wait", kong.MapperFunc(shell.DecodeWait)), kong.Vars{"version": version()})
}
