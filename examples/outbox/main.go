// outbox saves an order together with the message that tells others about it,
// and completes the event, in one DynamoDB transaction. So there is no order
// without a message, no message without an order, and none of them twice,
// although each message gets an id of its own.
//
// What sends the messages is another function: on a stream of ORDERS_TABLE,
// with a filter for new messages, wrapped with EachDynamoDBRecord.
//
// Event source: an SQS standard queue with ReportBatchItemFailures on the event
// source mapping, a visibility timeout of six times the function's timeout, and
// a dead-letter queue with a maxReceiveCount of at least 5. Besides the
// permissions for the lock table the function needs dynamodb:PutItem on
// ORDERS_TABLE (partition key "id", a string), which must be in the account and
// Region of the lock table.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	b := box{table: os.Getenv("ORDERS_TABLE")}
	if b.table == "" {
		log.Fatal("outbox: set ORDERS_TABLE in the function's environment")
	}
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatalf("outbox: AWS configuration: %v", err)
	}
	b.client = dynamodb.NewFromConfig(cfg)
	byOrder := keyfuncs.Once(keyfuncs.ByField(func(o order) string { return o.ID }))
	lambda.Start(middleware.EachSQSBody(byOrder, b.save))
}

type order struct {
	ID       string `json:"order"`
	Customer string `json:"customer"`
}

type box struct {
	client *dynamodb.Client
	table  string
}

func (b *box) save(ctx context.Context, o order) error {
	message := rand.Text()
	_, err := dynamostore.Transact(ctx, b.client, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		b.put("order/"+o.ID, "customer", o.Customer),
		b.put("message/"+message, "placed", o.ID),
	}})
	if err != nil {
		return fmt.Errorf("order %s: %w", o.ID, err)
	}
	slog.InfoContext(ctx, "order saved", "order", o.ID, "outbox", message)
	return nil
}

func (b *box) put(id, name, value string) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{TableName: &b.table, Item: map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: id},
		name: &types.AttributeValueMemberS{Value: value},
	}}}
}
