// fenced keeps account balances. A lock ends with its lease, but a write that
// was sent before may arrive later. The lease's fence rises with every holder,
// so the table can refuse a write that arrives after a later holder's. S3
// cannot compare metadata; there the fence only shows who wrote an object. A
// refused write is an error, so its event is delivered again. It then runs with
// a new fence, or is skipped because a later statement was completed (Order).
//
// Event source: an EventBridge rule for StatementClosed, with a dead-letter
// queue on the rule and a failure destination on the function. Besides the
// permissions for the lock table the function needs dynamodb:UpdateItem on
// ACCOUNTS_TABLE (partition key "account", a string) and s3:PutObject on
// ARCHIVE_BUCKET.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strconv"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	b := books{table: os.Getenv("ACCOUNTS_TABLE"), bucket: os.Getenv("ARCHIVE_BUCKET")}
	if b.table == "" || b.bucket == "" {
		log.Fatal("fenced: set ACCOUNTS_TABLE and ARCHIVE_BUCKET in the function's environment")
	}
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatalf("fenced: AWS configuration: %v", err)
	}
	b.dynamo = dynamodb.NewFromConfig(cfg)
	b.s3 = s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL")) != ""
	})
	lambda.Start(middleware.WithEventBridgeDetail(byAccount, b.handle))
}

type statement struct {
	Account string      `json:"account"`
	Number  int64       `json:"statement"`
	Balance json.Number `json:"balance"`
}

func byAccount(_ context.Context, s statement) (lock.Key, error) {
	if s.Account == "" || s.Number < 1 {
		return lock.Key{}, &lock.NoKeyError{Field: "account or statement", Reason: "is missing"}
	}
	return lock.Key{Name: "account/" + s.Account, Order: fmt.Sprintf("%019d", s.Number)}, nil
}

type books struct {
	dynamo        *dynamodb.Client
	s3            *s3.Client
	table, bucket string
}

func (b *books) handle(ctx context.Context, s statement) error {
	e, _ := middleware.RecordFromContext[events.EventBridgeEvent](ctx)
	lease, ok := lock.FromContext(ctx)
	if s.Balance == "" || !ok {
		return errors.New("the statement has no balance, or the handler no lease")
	}
	fence := strconv.FormatInt(lease.Fence, 10)
	if err := b.write(ctx, s, fence); err != nil {
		return fmt.Errorf("account %s: %w", s.Account, err)
	}
	_, err := b.s3.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &b.bucket, Key: aws.String(fmt.Sprintf("accounts/%s/%d.json", s.Account, s.Number)),
		Body: bytes.NewReader(e.Detail), Metadata: map[string]string{"fence": fence},
	})
	if err != nil {
		return fmt.Errorf("archive account %s: %w", s.Account, err)
	}
	slog.InfoContext(ctx, "balance written", "statement", s.Number, "fence", lease.Fence)
	return nil
}

// write sets the balance instead of adding to it, because after a crash the
// event is delivered again.
func (b *books) write(ctx context.Context, s statement, fence string) error {
	_, err := b.dynamo.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:        &b.table,
		Key:              map[string]types.AttributeValue{"account": &types.AttributeValueMemberS{Value: s.Account}},
		UpdateExpression: aws.String("SET balance = :balance, fence = :fence"),
		// An equal fence is allowed: the client repeats a request if its answer
		// is lost.
		ConditionExpression: aws.String("attribute_not_exists(fence) OR fence <= :fence"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":balance": &types.AttributeValueMemberN{Value: s.Balance.String()},
			":fence":   &types.AttributeValueMemberN{Value: fence},
		},
	})
	if errors.As(err, new(*types.ConditionalCheckFailedException)) {
		return fmt.Errorf("a later holder has written, fence %s is refused: %w", fence, err)
	}
	return err
}
