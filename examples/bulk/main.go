// bulk handles the messages of large batches, each once. A client in front of
// the lock table sends the locks of many messages in one request.
//
// Event source: an SQS standard queue with ReportBatchItemFailures, a BatchSize
// of 10000 and a MaximumBatchingWindowInSeconds on the event source mapping, a
// visibility timeout of six times the function's timeout plus that window, and
// a dead-letter queue with a maxReceiveCount of at least 5. The function needs
// dynamodb:PartiQLInsert and dynamodb:PartiQLUpdate on the lock table besides
// dynamodb:UpdateItem, and 512 MB of memory.
package main

import (
	"context"
	"log"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/dynamostore/batching"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	client, err := dynamostore.NewClient(context.Background())
	if err != nil {
		log.Fatalf("bulk: AWS configuration: %v", err)
	}
	store := dynamostore.New(batching.Client(client), os.Getenv("LOCK_TABLE_NAME"))
	lambda.Start(middleware.EachSQSMessage(keyfuncs.SQSMessage, handle, middleware.Store(store), middleware.Concurrency(200)))
}

// handle is where your own work goes. It waits for I/O, so that 200 can run at
// the same time.
func handle(ctx context.Context, m events.SQSMessage) error {
	slog.InfoContext(ctx, "message handled", "id", m.MessageId)
	return nil
}
