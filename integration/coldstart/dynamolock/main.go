// Command dynamolock is a Lambda function that takes its lock with dynamolock,
// to compare its cold start.
package main

import (
	"context"
	"fmt"
	"os"

	"cirello.io/dynamolock/v2"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

type event struct{ ID string }

var locks *dynamolock.Client

func main() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		fail(err)
	}
	locks, err = dynamolock.New(dynamodb.NewFromConfig(cfg), os.Getenv("LOCK_TABLE_NAME"), dynamolock.WithPartitionKeyName("lock"))
	if err != nil {
		fail(err)
	}
	if len(os.Args) < 2 {
		lambda.Start(handle)
		return
	}
	if err := handle(context.Background(), event{ID: os.Args[1]}); err != nil {
		fail(err)
	}
}

func handle(ctx context.Context, e event) error {
	held, err := locks.AcquireLockWithContext(ctx, e.ID)
	if err != nil {
		return err
	}
	fmt.Println("locked")
	_, err = locks.ReleaseLockWithContext(ctx, held)
	return err
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
