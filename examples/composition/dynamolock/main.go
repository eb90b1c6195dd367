// dynamolock moves a function from dynamolock to lambdalock. While its old
// version is still at work, the handler holds both locks: it takes the old one
// by itself, as before, and the new one is around it. docs/MIGRATION.md has the
// steps.
//
// Event source: asynchronous invocations, with a failure destination, of a
// function with a timeout of 12 minutes. Besides the permission for the lock
// table, it needs GetItem, PutItem and UpdateItem on OLD_LOCK_TABLE.
package main

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"cirello.io/dynamolock/v2"
	"github.com/aws/aws-lambda-go/lambda"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

const (
	// oldLease is longer than the handler may run, so it needs no heartbeat that
	// could fail. Two of them fit into an invocation: after a kill, the next one
	// watches the old lock for a whole lease, and then works.
	oldLease = 5 * time.Minute
	// answerTime is how long an answer from the old table can take. Others count
	// the lease from the write, and the handler from the answer.
	answerTime = 5 * time.Second
)

func main() {
	locks, err := openOldLocks(os.Getenv("OLD_LOCK_TABLE"))
	if err != nil {
		log.Fatalf("dynamolock: %v", err)
	}
	old := oldLock{locks, oldLease - 2*answerTime, book}
	lambda.Start(middleware.WithLock(byCustomer, old.handle))
}

func openOldLocks(table string) (*dynamolock.Client, error) {
	client := awshttp.NewBuildableClient().WithTimeout(answerTime)
	cfg, err := config.LoadDefaultConfig(context.Background(), config.WithHTTPClient(client))
	if err != nil {
		return nil, err
	}
	return dynamolock.New(dynamodb.NewFromConfig(cfg), table, dynamolock.WithOwnerName("both "+os.Getenv("AWS_LAMBDA_LOG_STREAM_NAME")),
		dynamolock.WithLeaseDuration(oldLease), dynamolock.DisableHeartbeat())
}

type order struct {
	ID       string `json:"order"`
	Customer string `json:"customer"`
}

func byCustomer(_ context.Context, o order) (lock.Key, error) {
	if o.ID == "" || o.Customer == "" {
		return lock.Key{}, &lock.NoKeyError{Field: "order or customer", Reason: "is missing"}
	}
	return lock.Key{Name: "customer/" + o.Customer, Event: o.ID}, nil
}

// oldLock is the old handler, with a limit to its work.
type oldLock struct {
	locks  *dynamolock.Client
	atMost time.Duration
	work   func(context.Context, order) error
}

func (l oldLock) handle(ctx context.Context, o order) error {
	held, err := l.locks.AcquireLockWithContext(ctx, o.Customer)
	if err != nil {
		return fmt.Errorf("take the old lock: %w", err)
	}
	defer func() {
		if err := held.Close(); err != nil {
			slog.WarnContext(ctx, "release the old lock", "error", err)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, l.atMost)
	defer cancel()
	return l.work(ctx, o)
}

// book is where your own work goes. It stops when its context ends.
func book(ctx context.Context, o order) error {
	slog.InfoContext(ctx, "order booked", "order", o.ID)
	return nil
}
