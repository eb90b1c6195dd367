// durablestart starts a durable function for each order. The execution's name
// is made from the order's key, and Lambda starts nothing for a name that it
// knows. So a start whose answer was lost may be repeated. Event source
// mappings do not name the executions that they start themselves.
// https://docs.aws.amazon.com/lambda/latest/dg/durable-execution-idempotency.html
//
// Event source: an SQS standard queue with ReportBatchItemFailures on the event
// source mapping, a visibility timeout of six times the function's timeout, and
// a dead-letter queue with a maxReceiveCount of at least 5. Besides the
// permissions for the lock table the function needs lambda:InvokeFunction on
// DURABLE_FUNCTION, the ARN of a durable function with a version or an alias.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	lambdaclient "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	s := starter{function: os.Getenv("DURABLE_FUNCTION")}
	if s.function == "" {
		log.Fatal("durablestart: set DURABLE_FUNCTION in the function's environment")
	}
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatalf("durablestart: AWS configuration: %v", err)
	}
	s.client = lambdaclient.NewFromConfig(cfg)
	lambda.Start(middleware.EachSQSBody(byOrder, s.start))
}

// order is also the payload of the execution. A second start with the same name
// must have the same payload, so nothing of the delivery belongs into it.
type order struct {
	ID     string `json:"order"`
	Amount int    `json:"amount"` // in cents
}

// byOrder makes every copy of an order one event, also one that is redriven, or
// that its sender puts into the queue twice.
func byOrder(_ context.Context, o order) (lock.Key, error) {
	if o.ID == "" {
		return lock.Key{}, &lock.NoKeyError{Field: "order", Reason: "is missing: every order has one"}
	}
	return lock.Key{Name: "order/" + o.ID, Event: o.ID}, nil
}

type starter struct {
	client   *lambdaclient.Client
	function string
}

func (s *starter) start(ctx context.Context, o order) error {
	name, err := idFor(ctx, "fulfil")
	if err != nil {
		return err
	}
	payload, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_, err = s.client.Invoke(ctx, &lambdaclient.InvokeInput{
		FunctionName: &s.function, InvocationType: types.InvocationTypeEvent, Payload: payload, DurableExecutionName: aws.String(name),
	})
	if err != nil {
		return fmt.Errorf("order %s: start execution %s: %w", o.ID, name, err)
	}
	slog.InfoContext(ctx, "execution started", "order", o.ID, "execution", name)
	return nil
}

// idFor returns an id for one effect of an event, of 64 letters and digits. It
// is the same in every try and every delivery of the event, and differs between
// events, names and effects. Only a lock whose key has an Event knows which one
// it is.
func idFor(ctx context.Context, effect string) (string, error) {
	if _, ok := lock.FromContext(ctx); !ok {
		return "", errors.New("the handler has no lease")
	}
	for _, lease := range lock.Leases(ctx) {
		if k := lease.Key; k.Event != "" {
			sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", effect, k.Name, k.Event))
			return hex.EncodeToString(sum[:]), nil
		}
	}
	return "", errors.New("the handler has no lock whose key has an Event")
}
