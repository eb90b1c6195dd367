package powertools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/migration/powertools"
)

// old does what the old version does, as its two packages have it:
//
//   - https://github.com/aws-powertools/powertools-lambda-python/blob/v3.37.0/aws_lambda_powertools/utilities/idempotency/persistence/dynamodb.py
//   - https://github.com/aws-powertools/powertools-lambda-typescript/blob/v2.35.0/packages/idempotency/src/persistence/DynamoDBPersistenceLayer.ts
func (f *fixture) old(ctx context.Context, event json.RawMessage) (o order, err error) {
	id, err := f.options.ID(event)
	if err != nil {
		return o, err
	}
	stored, err := f.saveInProgress(ctx, id)
	if err != nil || stored != nil {
		return f.oldResult(stored), err
	}
	name, key := table, map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}
	o, err = f.run(ctx, string(event))
	if err != nil {
		_, deleted := f.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{Delete: &types.Delete{TableName: &name, Key: key}},
		}})
		return o, errors.Join(err, deleted)
	}
	expression := "SET expiration = :expiration, #data = :data, #status = :status"
	_, err = f.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &name, Key: key, UpdateExpression: &expression,
		ExpressionAttributeNames: map[string]string{"#data": "data", "#status": "status"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":expiration": n(time.Now().Add(retention).Unix()), ":status": &types.AttributeValueMemberS{Value: "COMPLETED"}, ":data": f.oldData(o),
		},
	})
	return o, err
}

// saveInProgress returns the item that is in the way, or nil.
func (f *fixture) saveInProgress(ctx context.Context, id string) (map[string]types.AttributeValue, error) {
	end, _ := ctx.Deadline()
	name, now := table, time.Now()
	condition := "attribute_not_exists(#id) OR #expiry < :now OR (#status = :inprogress AND attribute_exists(#in_progress_expiry) AND #in_progress_expiry < :now_in_millis)"
	inProgress := &types.AttributeValueMemberS{Value: "INPROGRESS"}
	_, err := f.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &name, ConditionExpression: &condition,
		Item: map[string]types.AttributeValue{
			"id": &types.AttributeValueMemberS{Value: id}, "status": inProgress,
			"expiration": n(now.Add(retention).Unix()), "in_progress_expiration": n(end.UnixMilli()),
		},
		ExpressionAttributeNames: map[string]string{"#id": "id", "#expiry": "expiration", "#in_progress_expiry": "in_progress_expiration", "#status": "status"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":now": n(now.Unix()), ":now_in_millis": n(now.UnixMilli()), ":inprogress": inProgress,
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	var refused *types.ConditionalCheckFailedException
	if !errors.As(err, &refused) {
		return nil, err
	}
	if status, _ := refused.Item["status"].(*types.AttributeValueMemberS); status.Value == "INPROGRESS" {
		return nil, errors.New("IdempotencyAlreadyInProgressError")
	}
	return refused.Item, nil
}

func (f *fixture) oldData(o order) types.AttributeValue {
	if f.options.Language == powertools.TypeScript {
		return &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
			"order": n(int64(o.Order)), "status": &types.AttributeValueMemberS{Value: o.Status},
		}}
	}
	return &types.AttributeValueMemberS{Value: fmt.Sprintf(`{"order": %d, "status": %q}`, o.Order, o.Status)}
}

func (f *fixture) oldResult(stored map[string]types.AttributeValue) (o order) {
	switch data := stored["data"].(type) {
	case *types.AttributeValueMemberS:
		_ = json.Unmarshal([]byte(data.Value), &o)
	case *types.AttributeValueMemberM:
		status, _ := data.Value["status"].(*types.AttributeValueMemberS)
		number, _ := data.Value["order"].(*types.AttributeValueMemberN)
		_, _ = fmt.Sscan(number.Value, &o.Order)
		o.Status = status.Value
	}
	return o
}

func n(v int64) types.AttributeValue { return &types.AttributeValueMemberN{Value: fmt.Sprint(v)} }
