// fifocustomer applies changes to customers from a FIFO queue. It handles one
// change of a customer at a time, each change once and in order, and different
// customers in parallel. After a failed change only that customer's later
// changes wait.
//
// Event source: an SQS FIFO queue whose message group is the customer, with
// ReportBatchItemFailures on the event source mapping, a visibility timeout of
// six times the function's timeout, and a FIFO dead-letter queue.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	lambda.Start(middleware.EachSQSBody(middleware.RecordKey[change](keyfuncs.SQSFIFOMessage), handle))
}

type change struct {
	Number json.Number `json:"change"`
	Field  string      `json:"field"`
	Value  string      `json:"value"`
}

// handle is where your own work goes.
func handle(ctx context.Context, c change) error {
	m, _ := middleware.RecordFromContext[events.SQSMessage](ctx)
	if c.Field == "" {
		return errors.New("the change names no field")
	}
	slog.InfoContext(ctx, "change applied", "customer", m.Attributes["MessageGroupId"], "change", c.Number, "field", c.Field)
	return nil
}
