// Package dynamotest is DynamoDB in memory, for unit tests of handlers that
// write with [dynamostore.Transact]:
//
//	client := dynamotest.New(map[string]string{"accounts": "account"})
//	store := dynamostore.New(client, dynamotest.LockTable)
//	handle := middleware.WithLock(key, newHandler(client), middleware.Store(store))
//
// It knows UpdateItem, PutItem, GetItem, Scan, TransactWriteItems with Put,
// Update, Delete and ConditionCheck, and tables with one string partition key;
// in expressions SET, REMOVE, if_not_exists, + and -, comparisons, AND, OR,
// attribute_exists, attribute_not_exists and begins_with. It refuses everything
// else instead of ignoring it. Nothing leaves the process, so it also works in
// a bubble of testing/synctest.
package dynamotest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// LockTable is the name of the lock table that New creates.
const LockTable = "locks"

// New returns a client of an empty DynamoDB that has the lock table, and a
// table for each name in tables, whose value is the name of the partition key,
// a string. It panics if a name is not one of a table.
func New(tables map[string]string) *dynamodb.Client {
	client := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://dynamodb.invalid"), HTTPClient: direct{fakedynamo.New()},
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
	ctx := context.Background()
	err := dynamostore.EnsureTable(ctx, client, LockTable)
	for name, key := range tables {
		if err == nil {
			err = Create(ctx, client, name, key)
		}
	}
	if err != nil {
		panic(fmt.Sprintf("dynamotest: %v", err))
	}
	return client
}

// Create creates an empty table with that partition key, a string. The error is
// that of the request.
func Create(ctx context.Context, client *dynamodb.Client, name, key string) error {
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: &key, KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &key, AttributeType: types.ScalarAttributeTypeS}},
	})
	return err
}

// direct answers requests without a network.
type direct struct{ handler http.Handler }

// Do implements [dynamodb.HTTPClient].
func (d direct) Do(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	return w.Result(), r.Context().Err()
}
