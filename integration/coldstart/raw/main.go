// Command raw is a Lambda function that takes its lock with the SDK alone: what
// the cold start of the library is measured against.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type event struct{ ID string }

var client *dynamodb.Client

func main() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		fail(err)
	}
	client = dynamodb.NewFromConfig(cfg)
	if len(os.Args) < 2 {
		lambda.Start(handle)
		return
	}
	if err := handle(context.Background(), event{ID: os.Args[1]}); err != nil {
		fail(err)
	}
}

func handle(ctx context.Context, e event) error {
	now := time.Now()
	_, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:           aws.String(os.Getenv("LOCK_TABLE_NAME")),
		Key:                 map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: e.ID}},
		UpdateExpression:    aws.String("SET nonce = :n, expires = :e"),
		ConditionExpression: aws.String("attribute_not_exists(nonce) OR expires < :now OR nonce = :n"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":n":   &types.AttributeValueMemberS{Value: e.ID},
			":e":   &types.AttributeValueMemberN{Value: strconv.FormatInt(now.Add(time.Minute).UnixMilli(), 10)},
			":now": &types.AttributeValueMemberN{Value: strconv.FormatInt(now.UnixMilli(), 10)},
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err == nil {
		fmt.Println("locked")
	}
	return err
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
