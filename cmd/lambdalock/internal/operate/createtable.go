package operate

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/storeurl"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// CreateTable creates the lock table.
type CreateTable struct {
	Table string `arg:"" optional:"" help:"Name of the table; default: that of --store, or else of the environment variable LOCK_TABLE_NAME."`
	Store string `placeholder:"URL" env:"LAMBDALOCK_STORE" help:"dynamodb://TABLE, with ?region=REGION to create the table in another Region than that of the AWS configuration."`
}

// Help returns what --help adds.
func (c *CreateTable) Help() string {
	return `Examples:
  lambdalock create-table locks
  lambdalock create-table --store "dynamodb://locks?region=eu-central-1"`
}

// Run runs the command.
func (c *CreateTable) Run(ctx context.Context) error {
	client, table, err := c.place(ctx)
	if err != nil {
		return trouble(err)
	}
	if err := dynamostore.EnsureTable(ctx, client, table); err != nil {
		return trouble(err)
	}
	fmt.Printf("Table %s is ready in %s. Set %s=%[1]s in the function's environment, and allow its role dynamodb:UpdateItem on the table.\n", table, client.Options().Region, dynamostore.TableVariable)
	return nil
}

// place returns where the table is to be, and its name. The argument replaces
// the name in the store's URL, whose Region and endpoint stay.
func (c *CreateTable) place(ctx context.Context) (*dynamodb.Client, string, error) {
	if c.Store != "" {
		client, table, err := storeurl.DynamoDB(ctx, c.Store)
		return client, cmp.Or(c.Table, table), err
	}
	const variable = dynamostore.TableVariable
	table := cmp.Or(c.Table, os.Getenv(variable))
	if table == "" {
		return nil, "", wrongUse("name the table: lambdalock create-table NAME, or set %s", variable)
	}
	client, err := dynamostore.NewClient(ctx)
	return client, table, err
}
