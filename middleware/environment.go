package middleware

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// killedAtDeadline: classic Lambda kills the process at the deadline. Managed
// instances report the deadline, but let the code run on.
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-managed-instances-execution-environment.html
func killedAtDeadline() bool {
	return lambdacontext.MaxConcurrency() == 1 && os.Getenv("AWS_LAMBDA_INITIALIZATION_TYPE") != "lambda-managed-instances"
}

// holder is what a person needs to find the logs of the invocation that holds a
// lock. Outside Lambda the engine's own description is better.
func holder() func(context.Context) string {
	if lambdacontext.FunctionName == "" {
		return nil
	}
	return func(ctx context.Context) string {
		request := "unknown"
		if lc, ok := lambdacontext.FromContext(ctx); ok {
			request = lc.AwsRequestID
		}
		return lambdacontext.FunctionName + " request " + request + " log " + lambdacontext.LogStreamName
	}
}

// warmUpTimeout bounds what INIT spends on opening the connection: a store that is
// down must not keep the function from starting.
const warmUpTimeout = time.Second

// defaultStore is the DynamoDB store of the environment. It is opened at the first
// use, and again after an error, which may have been passing.
type defaultStore struct {
	table  string
	mu     sync.Mutex
	opened *dynamostore.Store
}

// inLambda: the runtime needs this variable to ask for events.
// https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
func inLambda() bool { return os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" }

// warmUp opens the connection during INIT, where Lambda does it before the first
// event. An error is not lost: the first invocation meets it again.
func (d *defaultStore) warmUp() {
	if !inLambda() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), warmUpTimeout)
	defer cancel()
	_ = d.Check(ctx)
}

func (d *defaultStore) open(ctx context.Context) (*dynamostore.Store, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.opened != nil {
		return d.opened, nil
	}
	s, err := dynamostore.Open(ctx, d.table)
	d.opened = s
	return s, err
}

func (d *defaultStore) Acquire(ctx context.Context, c *lock.Claim) (lock.Row, bool, error) {
	s, err := d.open(ctx)
	if err != nil {
		return lock.Row{}, false, err
	}
	return s.Acquire(ctx, c)
}

func (d *defaultStore) Renew(ctx context.Context, r *lock.Renewal) (lock.Row, bool, error) {
	s, err := d.open(ctx)
	if err != nil {
		return lock.Row{}, false, err
	}
	return s.Renew(ctx, r)
}

func (d *defaultStore) Release(ctx context.Context, t *lock.Settlement) (lock.Row, bool, error) {
	s, err := d.open(ctx)
	if err != nil {
		return lock.Row{}, false, err
	}
	return s.Release(ctx, t)
}

func (d *defaultStore) Check(ctx context.Context) error {
	s, err := d.open(ctx)
	if err != nil {
		return err
	}
	return s.Check(ctx)
}
