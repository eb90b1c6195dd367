package integration_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// TestConformance runs the public suite, as any store's own test would.
func TestConformance(t *testing.T) {
	for _, backend := range backends {
		t.Run(backend.name, func(t *testing.T) {
			client := newTable(t, backend.start(t))
			store := dynamostore.New(client, table)
			locktest.Run(t, locktest.Harness{
				Open: func(*testing.T) driver.Store { return store },
				MakeNewer: func(t *testing.T, _ driver.Store, name string) {
					_, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
						TableName: aws.String(table), Key: map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: name}},
						UpdateExpression:          aws.String("SET rowFormat = :two"),
						ExpressionAttributeValues: map[string]types.AttributeValue{":two": &types.AttributeValueMemberN{Value: "2"}},
					})
					if err != nil {
						t.Fatal(err)
					}
				},
			})
		})
	}
}

func TestEnsureTable(t *testing.T) {
	for _, backend := range backends {
		t.Run(backend.name, func(t *testing.T) {
			client := newTable(t, backend.start(t))
			if err := dynamostore.EnsureTable(t.Context(), client, table); err != nil {
				t.Errorf("second call: %v", err)
			}
			for name, in := range otherTables {
				in.TableName, in.BillingMode = aws.String(name), types.BillingModePayPerRequest
				t.Run(name, func(t *testing.T) {
					if _, err := client.CreateTable(t.Context(), &in); err != nil {
						t.Skipf("this server has no such tables: %v", err)
					}
					if err := dynamostore.EnsureTable(t.Context(), client, name); !errors.As(err, new(*lock.ConfigError)) {
						t.Errorf("got %v, want a *lock.ConfigError", err)
					}
				})
			}
		})
	}
}

// otherTables have keys that cannot hold locks.
var otherTables = map[string]dynamodb.CreateTableInput{
	"another-name": {
		AttributeDefinitions: []types.AttributeDefinition{stringAttribute("id")},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	},
	"another-type": {
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("lock"), AttributeType: types.ScalarAttributeTypeN}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("lock"), KeyType: types.KeyTypeHash}},
	},
	"sort-key": {
		AttributeDefinitions: []types.AttributeDefinition{stringAttribute("lock"), stringAttribute("sort")},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("lock"), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String("sort"), KeyType: types.KeyTypeRange},
		},
	},
}

func stringAttribute(name string) types.AttributeDefinition {
	return types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS}
}
