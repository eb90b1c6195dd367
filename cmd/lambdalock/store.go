package main

import (
	"context"
	"os"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/storeurl"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// storeFlags say where the locks are. Commands that need a store embed them.
type storeFlags struct {
	Store     string `placeholder:"URL" env:"LAMBDALOCK_STORE" help:"Where the locks are: ${storeForms}. Default: the DynamoDB table named in LOCK_TABLE_NAME."`
	Namespace string `placeholder:"NAME" env:"LOCK_NAMESPACE" help:"Namespace of the lock names, as in the option Namespace of package middleware (none)."`
}

// url returns the URL of the store, or "" if nothing names one.
func (f storeFlags) url() string {
	if f.Store != "" {
		return f.Store
	}
	if table := os.Getenv(dynamostore.TableVariable); table != "" {
		return "dynamodb://" + table
	}
	return ""
}

// open returns the store. The error is a *driver.ConfigError.
func (f storeFlags) open(ctx context.Context) (driver.Store, error) {
	u := f.url()
	if u == "" {
		return nil, &driver.ConfigError{Reason: "no store: give --store URL, or set LAMBDALOCK_STORE or " + dynamostore.TableVariable}
	}
	return storeurl.Open(ctx, u)
}
