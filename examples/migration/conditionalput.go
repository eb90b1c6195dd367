// Package migration has the handlers of docs/MIGRATION.md for functions that
// had a memory of their own, or that move to another store.
package migration

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/lock"
)

type payment struct {
	ID string `json:"payment"`
}

// byID names each payment, once.
func byID(_ context.Context, p payment) (lock.Key, error) {
	if p.ID == "" {
		return lock.Key{}, &lock.NoKeyError{Field: "payment", Reason: "is missing: every payment has one"}
	}
	return lock.Key{Name: "payment/" + p.ID, Event: p.ID}, nil
}

// oldTable has a row for each payment that the old handler knew, with its
// status.
type oldTable struct {
	client interface {
		GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	}
	name string
}

// unlessCompleted asks the old table before it handles a payment. A nil error
// completes it, so the table is not asked again.
func (t oldTable) unlessCompleted(handle func(context.Context, payment) error) func(context.Context, payment) error {
	return func(ctx context.Context, p payment) error {
		completed, err := t.completed(ctx, p.ID)
		if completed || err != nil {
			return err
		}
		return handle(ctx, p)
	}
}

func (t oldTable) completed(ctx context.Context, id string) (bool, error) {
	out, err := t.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &t.name, ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}},
	})
	if err != nil {
		return false, err
	}
	status, _ := out.Item["status"].(*types.AttributeValueMemberS)
	return status != nil && status.Value == "COMPLETED", nil
}
