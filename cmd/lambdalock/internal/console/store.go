// Package console has what several commands share: the flags that say where the
// locks are, the exit statuses of mistakes, and how to speak to a person.
package console

import (
	"cmp"
	"context"
	"os"
	"slices"

	"github.com/alecthomas/kong"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/deployed"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/storeurl"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// StoreFlags say where the locks are. Commands that need a store embed them.
type StoreFlags struct {
	Store     string `placeholder:"URL" env:"LAMBDALOCK_STORE" help:"Where the locks are: ${storeForms}. Default: the DynamoDB table named in LOCK_TABLE_NAME."`
	Namespace string `placeholder:"NAME" env:"LOCK_NAMESPACE" help:"Namespace of the lock names, as in the option Namespace of package middleware (none)."`
	Function  string `placeholder:"NAME" help:"Take the table and the namespace from this deployed Lambda function: a name or an ARN, either with :ALIAS."`

	deployed *deployed.Function // whose Store and Namespace they are; nil: not resolved
}

// AfterApply drops the namespace of the environment if Function is given: what
// the shell has for other commands is not what the function's code sets.
func (f *StoreFlags) AfterApply(parsed *kong.Context) error {
	given := slices.ContainsFunc(parsed.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag.Name == "namespace" })
	if f.Function != "" && !given {
		f.Namespace = ""
	}
	return nil
}

// URL returns the URL of the store, or "" if nothing names one.
func (f *StoreFlags) URL() string {
	if f.Store != "" {
		return f.Store
	}
	if table := os.Getenv(dynamostore.TableVariable); table != "" {
		return "dynamodb://" + table
	}
	return ""
}

// Open returns the store, after Resolve. The error is a *driver.ConfigError, or
// that of Resolve.
func (f *StoreFlags) Open(ctx context.Context) (driver.Store, error) {
	if err := f.Resolve(ctx); err != nil {
		return nil, err
	}
	u := f.URL()
	if u == "" {
		return nil, &driver.ConfigError{Reason: "no store: give --store URL, or set LAMBDALOCK_STORE or " + dynamostore.TableVariable}
	}
	return storeurl.Open(ctx, u)
}

// Resolve sets Store and Namespace to those of Function, if it is given. A
// function that sets its store or its namespace in code has no variable for it:
// then the given one stays. The error is a *driver.ConfigError or a
// *driver.Error.
func (f *StoreFlags) Resolve(ctx context.Context) error {
	if f.Function == "" || f.deployed != nil {
		return nil
	}
	cfg, err := f.AWS(ctx)
	if err != nil {
		return err
	}
	function, err := deployed.Configuration(ctx, lambda.NewFromConfig(cfg), f.Function)
	if err != nil {
		return err
	}
	switch {
	case function.Table != "":
		if f.Store, err = storeurl.OfTable(function.Table, cfg.Region, f.Store); err != nil {
			return &driver.ConfigError{Reason: "correct " + dynamostore.TableVariable + " of function " + function.Name, Err: err}
		}
	case f.Store == "":
		return &driver.ConfigError{Reason: "function " + function.Name + " has no " + dynamostore.TableVariable + ", so its code chooses its store: give that as --store, too"}
	}
	f.Namespace = cmp.Or(function.Namespace, f.Namespace, function.DefaultNamespace())
	f.deployed = function
	return nil
}

// Deployed returns Function, after Resolve, or nil if none is given.
func (f *StoreFlags) Deployed() *deployed.Function { return f.deployed }

// AWS returns the configuration for requests about Function, whose Region is
// that of its ARN or of the store's URL, if they name one.
func (f *StoreFlags) AWS(ctx context.Context) (aws.Config, error) {
	return storeurl.AWS(ctx, cmp.Or(deployed.Region(f.Function), storeurl.Region(f.Store)))
}
