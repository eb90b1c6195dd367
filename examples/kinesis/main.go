// kinesis stores sensor readings from a stream, each once and in the order of
// the shard. After a failed reading, Lambda delivers that reading and all later
// ones again.
//
// Add middleware.OrderPerName() to keep only the order within each partition
// key. Then the sensors of a shard are handled in parallel, and one that fails
// does not stop the others.
//
// Event source: a Kinesis stream with ReportBatchItemFailures,
// BisectBatchOnFunctionError, MaximumRetryAttempts, MaximumRecordAgeInSeconds
// and a failure destination on the event source mapping. Without them, one bad
// record stops its shard.
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
	lambda.Start(middleware.EachKinesisBody(middleware.RecordKey[reading](keyfuncs.KinesisRecord), handle))
}

type reading struct {
	Number  json.Number `json:"reading"`
	Celsius *float64    `json:"celsius"`
}

// handle is where your own work goes.
func handle(ctx context.Context, v reading) error {
	r, _ := middleware.RecordFromContext[events.KinesisEventRecord](ctx)
	sensor := r.Kinesis.PartitionKey
	if v.Celsius == nil {
		return errors.New("the reading of " + sensor + " has no temperature")
	}
	slog.InfoContext(ctx, "reading stored", "sensor", sensor, "reading", v.Number, "celsius", *v.Celsius)
	return nil
}
