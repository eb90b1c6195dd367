// transfer moves money between accounts, exactly once. Both balances and the
// completion of the event are written in one DynamoDB transaction: either all
// of it happens, or nothing. So nothing in the handler has to be idempotent.
//
// Event source: an SQS standard queue with ReportBatchItemFailures on the event
// source mapping, a visibility timeout of six times the function's timeout, and
// a dead-letter queue with a maxReceiveCount of at least 5. Besides the
// permissions for the lock table the function needs dynamodb:UpdateItem on
// ACCOUNTS_TABLE (partition key "account", a string), which must be in the
// account and Region of the lock table.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	b := books{table: os.Getenv("ACCOUNTS_TABLE")}
	if b.table == "" {
		log.Fatal("transfer: set ACCOUNTS_TABLE in the function's environment")
	}
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatalf("transfer: AWS configuration: %v", err)
	}
	b.client = dynamodb.NewFromConfig(cfg)
	lambda.Start(middleware.EachSQSBody(byID, b.handle))
}

type transfer struct {
	ID     string `json:"transfer"`
	From   string `json:"from"`
	To     string `json:"to"`
	Amount int64  `json:"amount"` // in cents
}

// byID makes every copy of a transfer one event, even if the sender puts it
// into the queue twice. Two transfers may run at the same time, even on one
// account: the transaction keeps them apart.
func byID(_ context.Context, t transfer) (lock.Key, error) {
	if t.ID == "" {
		return lock.Key{}, &lock.NoKeyError{Field: "transfer", Reason: "is missing: every transfer has one"}
	}
	return lock.Key{Name: "transfer/" + t.ID, Event: t.ID}, nil
}

type books struct {
	client *dynamodb.Client
	table  string
}

func (b *books) handle(ctx context.Context, t transfer) error {
	if t.From == "" || t.To == "" || t.From == t.To || t.Amount < 1 {
		return fmt.Errorf("transfer %s: needs two accounts and an amount", t.ID)
	}
	_, err := dynamostore.Transact(ctx, b.client, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		b.change(t.From, "SET balance = balance - :amount", "balance >= :amount", t.Amount),
		b.change(t.To, "SET balance = balance + :amount", "attribute_exists(balance)", t.Amount),
	}})
	if refused(err) {
		// Nothing was written, and the lock is still held: returning nil completes
		// the event, so the transfer stays refused.
		slog.InfoContext(ctx, "transfer refused", "transfer", t.ID)
		return nil
	}
	if err != nil {
		return fmt.Errorf("transfer %s: %w", t.ID, err)
	}
	slog.InfoContext(ctx, "transfer made", "transfer", t.ID, "from", t.From, "to", t.To, "amount", t.Amount)
	return nil
}

// change returns a write that would double its effect if it were repeated.
func (b *books) change(account, update, condition string, amount int64) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName:                 &b.table,
		Key:                       map[string]types.AttributeValue{"account": &types.AttributeValueMemberS{Value: account}},
		UpdateExpression:          &update,
		ConditionExpression:       &condition,
		ExpressionAttributeValues: map[string]types.AttributeValue{":amount": &types.AttributeValueMemberN{Value: fmt.Sprint(amount)}},
	}}
}

// refused reports whether a condition of the transfer itself failed: there is
// no such account, or too little on it.
func refused(err error) bool {
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) {
		return false
	}
	for _, r := range canceled.CancellationReasons {
		if aws.ToString(r.Code) == "ConditionalCheckFailed" {
			return true
		}
	}
	return false
}
