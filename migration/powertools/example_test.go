package powertools_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/migration/powertools"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/dynamostore/dynamotest"
)

// old is the table of the function that this one replaces.
var old = powertools.Table[events.SQSMessage]{
	Name:      "idempotency",
	Language:  powertools.Python,
	Prefix:    "orders.app.process", // function, module and handler; TypeScript: only the function
	Part:      func(m events.SQSMessage) any { return m.MessageId },
	CutOver:   time.Date(2030, 12, 1, 12, 0, 0, 0, time.UTC),
	Retention: time.Hour, // the old expires_after_seconds
}

func TestOldID(t *testing.T) {
	const want = "orders.app.process#068044a7927cd88524adc22442efbed9" // from the table
	got, err := old.ID(events.SQSMessage{MessageId: "059f36b4-87a3-44ab-83d2-661975830a7d"})
	if got != want || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
}

// newHandler returns what main passes to lambda.Start.
func newHandler(client *dynamodb.Client, opts ...middleware.Option) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	old := old
	old.Client = client
	return middleware.EachSQSMessage(keyfuncs.SQSMessage, powertools.RecordHandler(old, handle), opts...)
}

func handle(_ context.Context, m events.SQSMessage) error {
	fmt.Println("handled:", m.Body)
	return nil
}

func Example() {
	client := dynamotest.New(map[string]string{"idempotency": "id"})
	table, expiration := "idempotency", time.Now().Add(time.Hour).Unix()
	_, err := client.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
		"id":         &types.AttributeValueMemberS{Value: "orders.app.process#068044a7927cd88524adc22442efbed9"},
		"status":     &types.AttributeValueMemberS{Value: "COMPLETED"},
		"expiration": &types.AttributeValueMemberN{Value: fmt.Sprint(expiration)},
	}})
	handler := newHandler(client, middleware.Store(dynamostore.New(client, dynamotest.LockTable)))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // Lambda's deadline
	defer cancel()
	answer, handlerErr := handler(ctx, events.SQSEvent{Records: []events.SQSMessage{
		{MessageId: "059f36b4-87a3-44ab-83d2-661975830a7d", Body: "an order that the old version completed", EventSource: "aws:sqs"},
		{MessageId: "2e1424d4-f796-459a-8184-9c92662be6da", Body: "another order", EventSource: "aws:sqs"},
	}})
	fmt.Println(len(answer.BatchItemFailures), err, handlerErr)
	// Output:
	// handled: another order
	// 0 <nil> <nil>
}
