// Command azure is a Lambda function with a handler that is locked in Azure
// Blob Storage, to measure its size. It has the storage account's key: another
// way to authenticate makes it larger.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/azblobstore"
)

type event struct{ ID string }

func main() {
	client, err := container.NewClientFromConnectionString(os.Getenv("AZURE_STORAGE_CONNECTION_STRING"), "locks", nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lambda.Start(middleware.WithLock(key, handle, middleware.Store(azblobstore.New(client, "locks/"))))
}

func key(_ context.Context, e event) (lock.Key, error) { return lock.Key{Name: e.ID}, nil }

func handle(context.Context, event) error {
	fmt.Println("locked")
	return nil
}
