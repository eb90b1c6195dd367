package integration_test

import (
	"context"
	"crypto/rand"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// rawLock is the smallest possible lock with the SDK alone: no fence, no memory
// of events, no time limits, no recovery. The library is measured against it.
type rawLock struct{ client *dynamodb.Client }

func (r rawLock) cycle(ctx context.Context, name string) error {
	nonce := rand.Text()
	if err := r.acquire(ctx, name, nonce, time.Minute); err != nil {
		return err
	}
	return r.release(ctx, name, nonce)
}

func (r rawLock) acquire(ctx context.Context, name, nonce string, lease time.Duration) error {
	now := time.Now()
	_, err := r.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:           aws.String(table),
		Key:                 map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: name}},
		UpdateExpression:    aws.String("SET nonce = :n, expires = :e"),
		ConditionExpression: aws.String("attribute_not_exists(nonce) OR expires < :now OR nonce = :n"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":n":   &types.AttributeValueMemberS{Value: nonce},
			":e":   &types.AttributeValueMemberN{Value: strconv.FormatInt(now.Add(lease).UnixMilli(), 10)},
			":now": &types.AttributeValueMemberN{Value: strconv.FormatInt(now.UnixMilli(), 10)},
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return err
}

func (r rawLock) release(ctx context.Context, name, nonce string) error {
	_, err := r.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:           aws.String(table),
		Key:                 map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: name}},
		UpdateExpression:    aws.String("REMOVE nonce, expires"),
		ConditionExpression: aws.String("nonce = :n"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":n": &types.AttributeValueMemberS{Value: nonce},
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return err
}

// replay sends the store's own requests with the SDK alone, for other names.
// What it costs above rawLock is the price of a richer row, to client and
// server; what a cycle costs above replay is the library.
type replay struct {
	client   *dynamodb.Client
	requests []dynamodb.UpdateItemInput
}

// newReplay records the requests of one cycle, of a plain mutex or with an
// event.
func newReplay(ctx context.Context, tb testing.TB, client *dynamodb.Client, event string) *replay {
	tb.Helper()
	r := &replay{client: client}
	locker := newLocker(tb, dynamostore.New(r, table), lock.Options{Lease: lock.UntilDeadline()})
	if err := locker.Do(ctx, lock.Key{Name: "any", Event: event}, nothing); err != nil {
		tb.Fatal(err)
	}
	return r
}

// UpdateItem implements dynamostore.Client: it records the request and grants
// it.
func (r *replay) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	r.requests = append(r.requests, *in)
	return &dynamodb.UpdateItemOutput{}, nil
}

func (r *replay) cycle(ctx context.Context, name string, work func()) error {
	for i, in := range r.requests {
		if i > 0 {
			work()
		}
		in.Key = map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: name}}
		if _, err := r.client.UpdateItem(ctx, &in); err != nil {
			return err
		}
	}
	return nil
}
