package main

import (
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/dynamostore/dynamotest"
)

// TestTransfer: two copies of a message move the money once.
func TestTransfer(t *testing.T) {
	t.Parallel()
	b := books{client: dynamotest.New(map[string]string{"accounts": "account"}), table: "accounts"}
	for account, balance := range map[string]string{"jane": "100", "joe": "0"} {
		_, err := b.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.table, Item: map[string]types.AttributeValue{
			"account": &types.AttributeValueMemberS{Value: account}, "balance": &types.AttributeValueMemberN{Value: balance},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	store := dynamostore.New(b.client, dynamotest.LockTable)
	handle := middleware.EachSQSBody(byID, b.handle, middleware.Store(store), middleware.Namespace("transfer"))
	message := events.SQSMessage{
		MessageId: "1", EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-west-1:123456789012:transfers",
		Body: `{"transfer":"t1","from":"jane","to":"joe","amount":60}`,
	}
	for range 2 {
		failed, err := handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{message}})
		if err != nil || len(failed.BatchItemFailures) > 0 {
			t.Fatal(failed, err)
		}
	}
	for account, want := range map[string]string{"jane": "40", "joe": "60"} {
		out, err := b.client.GetItem(t.Context(), &dynamodb.GetItemInput{
			TableName: &b.table, Key: map[string]types.AttributeValue{"account": &types.AttributeValueMemberS{Value: account}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := out.Item["balance"].(*types.AttributeValueMemberN); !ok || got.Value != want {
			t.Errorf("%s has %v, want %s", account, out.Item["balance"], want)
		}
	}
}
