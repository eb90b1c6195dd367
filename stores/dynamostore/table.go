package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// TableClient is the part of a *dynamodb.Client that EnsureTable needs.
type TableClient interface {
	dynamodb.DescribeTableAPIClient
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
	UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
}

// tableWait is how long a new table may take to become active; it usually takes
// a few seconds.
const tableWait = 2 * time.Minute

// EnsureTable creates the on-demand table with its TTL attribute if it does not
// exist, and waits up to two minutes until it can be used. It only checks a
// table that exists, and sets the TTL attribute if the table has none. The
// error is a [*driver.ConfigError] if the table has another key or TTL
// attribute. Call it from tools and tests: a function should not need
// permission to create tables.
func EnsureTable(ctx context.Context, client TableClient, table string) error {
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            &table,
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("lock"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("lock"), KeyType: types.KeyTypeHash}},
	})
	var exists *types.ResourceInUseException
	if err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("lambdalock: create table %s: %w", table, err)
	}
	quick := func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 200*time.Millisecond, 2*time.Second
	}
	out, err := dynamodb.NewTableExistsWaiter(client, quick).WaitForOutput(ctx, &dynamodb.DescribeTableInput{TableName: &table}, tableWait)
	if err != nil {
		return fmt.Errorf("lambdalock: wait for table %s: %w", table, err)
	}
	if err := CheckKey(out.Table); err != nil {
		return err
	}
	return ensureTTL(ctx, client, table)
}

// CheckKey returns a [*driver.ConfigError] if the table has another key than
// the store needs. EnsureTable calls it, and so may a tool that only looks.
func CheckKey(t *types.TableDescription) error {
	ok := len(t.KeySchema) == 1 && aws.ToString(t.KeySchema[0].AttributeName) == "lock"
	for _, a := range t.AttributeDefinitions {
		ok = ok && (aws.ToString(a.AttributeName) != "lock" || a.AttributeType == types.ScalarAttributeTypeS)
	}
	if !ok {
		return &driver.ConfigError{Reason: fmt.Sprintf(`the table %s exists with a different key: it needs a partition key named "lock" of type String and no sort key; choose another name`, aws.ToString(t.TableName))}
	}
	return nil
}

func ensureTTL(ctx context.Context, client TableClient, table string) error {
	if has, err := hasTTL(ctx, client, table); has || err != nil {
		return err
	}
	_, err := client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               &table,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("deleteAfter"), Enabled: aws.Bool(true)},
	})
	if err == nil {
		return nil
	}
	if has, _ := hasTTL(ctx, client, table); has { // another process was faster
		return nil
	}
	return fmt.Errorf("lambdalock: set the TTL attribute of table %s: %w", table, err)
}

// hasTTL reports whether the table has the TTL attribute. The error is a
// [*driver.ConfigError] if it has another one.
func hasTTL(ctx context.Context, client TableClient, table string) (bool, error) {
	ttl, err := client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &table})
	if err != nil {
		return false, fmt.Errorf("lambdalock: read the TTL setting of table %s: %w", table, err)
	}
	d := ttl.TimeToLiveDescription
	if d == nil || d.TimeToLiveStatus != types.TimeToLiveStatusEnabled && d.TimeToLiveStatus != types.TimeToLiveStatusEnabling {
		return false, nil
	}
	if name := aws.ToString(d.AttributeName); name != "deleteAfter" {
		return false, &driver.ConfigError{Reason: fmt.Sprintf("the table %s expires items by the attribute %q, not by deleteAfter; choose another table", table, name)}
	}
	return true, nil
}
