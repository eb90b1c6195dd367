package main

import (
	"context"
	"fmt"
	"os"

	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

type createTableCmd struct {
	Table string `arg:"" optional:"" help:"Name of the table; default: the environment variable LOCK_TABLE_NAME."`
}

func (c *createTableCmd) Run(ctx context.Context) error {
	if c.Table == "" {
		c.Table = os.Getenv(dynamostore.TableVariable)
	}
	if c.Table == "" {
		return fmt.Errorf("name the table: lambdalock create-table NAME, or set %s", dynamostore.TableVariable)
	}
	client, err := dynamostore.OpenClient(ctx)
	if err != nil {
		return err
	}
	if err := dynamostore.EnsureTable(ctx, client, c.Table); err != nil {
		return err
	}
	fmt.Printf("Table %s is ready. Set %s=%s in the function's environment, and allow its role dynamodb:UpdateItem on the table.\n", c.Table, dynamostore.TableVariable, c.Table)
	return nil
}
