package main

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

type createTableCmd struct {
	Table string `arg:"" optional:"" help:"Name of the table; default: the environment variable LOCK_TABLE_NAME."`
}

func (c *createTableCmd) Run(ctx context.Context) error {
	const variable = dynamostore.TableVariable
	table := cmp.Or(c.Table, os.Getenv(variable))
	if table == "" {
		return wrongUse("name the table: lambdalock create-table NAME, or set %s", variable)
	}
	client, err := dynamostore.OpenClient(ctx)
	if err != nil {
		return trouble(err)
	}
	if err := dynamostore.EnsureTable(ctx, client, table); err != nil {
		return trouble(err)
	}
	fmt.Printf("Table %s is ready. Set %s=%[1]s in the function's environment, and allow its role dynamodb:UpdateItem on the table.\n", table, variable)
	return nil
}
