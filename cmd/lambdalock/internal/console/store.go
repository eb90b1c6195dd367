// Package console has what several commands share: the flags that say where the
// locks are, the exit statuses of mistakes, and how to speak to a person.
package console

import (
	"context"
	"os"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/storeurl"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// StoreFlags say where the locks are. Commands that need a store embed them.
type StoreFlags struct {
	Store     string `placeholder:"URL" env:"LAMBDALOCK_STORE" help:"Where the locks are: ${storeForms}. Default: the DynamoDB table named in LOCK_TABLE_NAME."`
	Namespace string `placeholder:"NAME" env:"LOCK_NAMESPACE" help:"Namespace of the lock names, as in the option Namespace of package middleware (none)."`
}

// URL returns the URL of the store, or "" if nothing names one.
func (f StoreFlags) URL() string {
	if f.Store != "" {
		return f.Store
	}
	if table := os.Getenv(dynamostore.TableVariable); table != "" {
		return "dynamodb://" + table
	}
	return ""
}

// Open returns the store. The error is a *driver.ConfigError.
func (f StoreFlags) Open(ctx context.Context) (driver.Store, error) {
	u := f.URL()
	if u == "" {
		return nil, &driver.ConfigError{Reason: "no store: give --store URL, or set LAMBDALOCK_STORE or " + dynamostore.TableVariable}
	}
	return storeurl.Open(ctx, u)
}
