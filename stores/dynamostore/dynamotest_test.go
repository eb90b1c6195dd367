package dynamostore_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/dynamostore/dynamotest"
)

// TestDynamotest: the handler's write and the completion are one transaction,
// in fake time, too.
func TestDynamotest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := dynamotest.New(map[string]string{"accounts": "account"})
		locker := expect.Value(lock.New(dynamostore.New(client, dynamotest.LockTable), nil))(t)
		account := map[string]types.AttributeValue{"account": &types.AttributeValueMemberS{Value: "jane"}}
		for range 2 {
			err := locker.Do(t.Context(), lock.Key{Name: "a", Event: "e1"}, func(ctx context.Context) error {
				_, err := dynamostore.Transact(ctx, client, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
					{Put: &types.Put{TableName: aws.String("accounts"), Item: account, ConditionExpression: aws.String("attribute_not_exists(account)")}},
				}})
				return err
			})
			if err != nil && !errors.Is(err, lock.ErrCompleted) {
				t.Error(err)
			}
		}
		out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("accounts"), Key: account})
		if err != nil || len(out.Item) != 1 {
			t.Errorf("the account is %v (%v)", out, err)
		}
	})
}

// TestDynamotestWrongTable: a test's own mistake is not an error to handle.
func TestDynamotestWrongTable(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	dynamotest.New(map[string]string{"a": "account"})
}
