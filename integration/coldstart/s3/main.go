// Command s3 is a Lambda function with a handler that is locked in an S3
// bucket, to measure its size.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/s3store"
)

type event struct{ ID string }

func main() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	store := s3store.New(s3.NewFromConfig(cfg), os.Getenv("LOCK_BUCKET"), "locks/")
	lambda.Start(middleware.WithLock(key, handle, middleware.Store(store)))
}

func key(_ context.Context, e event) (lock.Key, error) { return lock.Key{Name: e.ID}, nil }

func handle(context.Context, event) error {
	fmt.Println("locked")
	return nil
}
