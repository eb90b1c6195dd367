package dynamostore_test

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// newFakeFixture returns a fixture without a network, for fake time: no test
// fails because the machine is busy.
func newFakeFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{Server: fakedynamo.New()}
	f.client = clientOf(f.Server)
	expect.Must(t, dynamostore.EnsureTable(t.Context(), f.client, table))
	f.store = dynamostore.New(f.client, table)
	return f
}

// bank is a lock table and accounts, without a network.
type bank struct {
	*fakedynamo.Server
	client *dynamodb.Client
	store  *dynamostore.Store
}

func newBank(t *testing.T, balances map[string]string) *bank {
	t.Helper()
	b := &bank{Server: fakedynamo.New()}
	b.client = clientOf(b.Server)
	b.store = dynamostore.New(b.client, table)
	expect.Must(t, dynamostore.EnsureTable(t.Context(), b.client, table))
	expect.Value(b.client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("accounts"), BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("account"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("account"), AttributeType: types.ScalarAttributeTypeS}},
	}))(t)
	for account, balance := range balances {
		expect.Value(b.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("accounts"), Item: map[string]types.AttributeValue{
			"account": &types.AttributeValueMemberS{Value: account}, "balance": &types.AttributeValueMemberN{Value: balance},
		}}))(t)
	}
	return b
}

func clientOf(h http.Handler) *dynamodb.Client { return clientOver(fault.InProcess{Handler: h}) }

func clientOver(transport http.RoundTripper) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", HTTPClient: &http.Client{Transport: transport}, BaseEndpoint: aws.String("http://dynamodb"),
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
}

func (b *bank) locker(t *testing.T, o lock.Options) *lock.Locker {
	t.Helper()
	return newLocker(t, b.store, o)
}

func newLocker(t *testing.T, store driver.Store, o lock.Options) *lock.Locker {
	t.Helper()
	o.Logger = discard
	l := expect.Value(lock.New(store, &o))(t)
	return l
}

func (b *bank) balance(account string) string {
	v, _ := b.Item("accounts", account)["balance"].(map[string]any)
	text, _ := v["N"].(string)
	return text
}

// change adds amount to an account, or takes it, if there is enough. Repeated,
// it would do so again.
func change(account, operator, amount string) types.TransactWriteItem {
	u := &types.Update{
		TableName: aws.String("accounts"), Key: map[string]types.AttributeValue{"account": &types.AttributeValueMemberS{Value: account}},
		UpdateExpression:          aws.String("SET balance = balance " + operator + " :amount"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":amount": &types.AttributeValueMemberN{Value: amount}},
	}
	if operator == "-" {
		u.ConditionExpression = aws.String("balance >= :amount")
	}
	return types.TransactWriteItem{Update: u}
}

func transfer(from, to, amount string) *dynamodb.TransactWriteItemsInput {
	return &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{change(from, "-", amount), change(to, "+", amount)}}
}
