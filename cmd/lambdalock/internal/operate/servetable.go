package operate

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"

	"github.com/lambdalock/lambdalock/internal/local/localtable"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// ServeTable serves a lock table in memory.
type ServeTable struct {
	Address      string `arg:"" optional:"" default:"127.0.0.1:8000" help:"Address to listen on, HOST:PORT (${default}). Port 0 takes a free one."`
	Table        string `placeholder:"NAME" help:"Name of the table; default: that of the environment variable LOCK_TABLE_NAME, or else locks."`
	AnyInterface bool   `help:"Allow an address that other machines can reach: they can then read and change the table."`
}

// Help returns what --help adds.
func (c *ServeTable) Help() string {
	return `A lock table for functions that run elsewhere on this machine, such as under AWS's aws-lambda-rie or sam local. It needs no Docker and no AWS account. It is DynamoDB in memory, as far as locks need it: one empty table, gone when the command ends.

It prints the variables to set in the environment of the functions, and of the other commands, which then show these locks. Set them in a shell of its own, because they replace your credentials. A container has another loopback interface: in Docker Desktop it reaches the table as http://host.docker.internal:8000, and on Linux if the table is served with --any-interface :8000.

It ends with Ctrl-C, and then its status is 0.

Examples:
  lambdalock serve-table                          # and, in another shell, set what it prints
  lambdalock serve-table 127.0.0.1:0 --table orders-locks
  lambdalock serve-table --any-interface :8000    # for containers on Linux`
}

// Run runs the command.
func (c *ServeTable) Run(ctx context.Context) error {
	listener, err := c.listen()
	if err != nil {
		return trouble(err)
	}
	name := cmp.Or(c.Table, os.Getenv(dynamostore.TableVariable), "locks")
	table, err := localtable.Serve(ctx, listener, name)
	if err != nil {
		return trouble(err)
	}
	defer table.Close()
	fmt.Fprintf(os.Stderr, "Serves the empty table %s on %s, until Ctrl-C. For functions and commands in other shells:\n", name, listener.Addr())
	exports := "export LAMBDALOCK_STORE=\n" // it would take precedence over LOCK_TABLE_NAME
	for _, variable := range table.Env {
		exports += "export " + variable + "\n" // neither an address nor the name of a table needs quotes
	}
	fmt.Print(exports) // at once, for who waits for the file
	<-ctx.Done()
	return nil
}

func (c *ServeTable) listen() (net.Listener, error) {
	address, err := net.ResolveTCPAddr("tcp", c.Address)
	if err != nil {
		return nil, wrongUse("%s: %w", c.Address, err)
	}
	if !address.IP.IsLoopback() && !c.AnyInterface {
		return nil, wrongUse("other machines can reach %s, and could change the locks: choose a port of 127.0.0.1, or add --any-interface", address)
	}
	return net.ListenTCP("tcp", address)
}
