package servers

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestDynoxide(t *testing.T)      { testConditionalUpdate(t, Dynoxide(t)) }
func TestDynamoDBLocal(t *testing.T) { testConditionalUpdate(t, DynamoDBLocal(t)) }

// testConditionalUpdate runs a condition that passes on the missing row and is
// refused, with the row, once the row is there.
func testConditionalUpdate(t *testing.T, s Server) {
	db := dynamodb.New(dynamodb.Options{
		Region:       "eu-central-1",
		BaseEndpoint: aws.String(s.Endpoint),
		Credentials:  credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
	createTable(t, db)
	if err := claim(t.Context(), db, "first"); err != nil {
		t.Fatalf("%s: first update: %v", s.Name, err)
	}
	err := claim(t.Context(), db, "second")
	var refused *types.ConditionalCheckFailedException
	if !errors.As(err, &refused) {
		t.Fatalf("%s: second update: got %v, want it refused by its condition", s.Name, err)
	}
	who, ok := refused.Item["who"].(*types.AttributeValueMemberS)
	if !ok || who.Value != "first" {
		t.Errorf("%s: refused update returned %v, want the row written first", s.Name, refused.Item)
	}
}

func createTable(t *testing.T, db *dynamodb.Client) {
	t.Helper()
	_, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:   aws.String("locks"),
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash},
		},
	})
	if err != nil {
		t.Fatalf("create table: %v", err)
	}
}

func claim(ctx context.Context, db *dynamodb.Client, who string) error {
	_, err := db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:           aws.String("locks"),
		Key:                 map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "a"}},
		UpdateExpression:    aws.String("SET who = :who"),
		ConditionExpression: aws.String("attribute_not_exists(who)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":who": &types.AttributeValueMemberS{Value: who},
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return err
}
