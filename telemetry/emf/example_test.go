package emf_test

import (
	"context"
	"log"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/telemetry/emf"
)

// A function that a schedule invokes every ten minutes. It looks at the table
// LOCK_TABLE_NAME.
func ExampleOldestHeld() {
	store, err := dynamostore.Open(context.Background(), "")
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(func(ctx context.Context) error { return emf.OldestHeld(ctx, store, nil) })
}
