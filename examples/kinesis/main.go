// kinesis stores sensor readings from a stream, each once and in the order of
// the shard. After a failed reading, Lambda delivers that reading and all later
// ones again.
//
// Add middleware.OrderByName() to keep only the order within each partition
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
	"fmt"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	lambda.Start(middleware.EachKinesisRecord(keyfuncs.KinesisRecord, handle))
}

type reading struct {
	Number  json.Number `json:"reading"`
	Celsius *float64    `json:"celsius"`
}

func handle(ctx context.Context, r events.KinesisEventRecord) error {
	var v reading
	if err := json.Unmarshal(r.Kinesis.Data, &v); err != nil {
		return fmt.Errorf("reading %s: %w", r.Kinesis.SequenceNumber, err)
	}
	return store(ctx, r.Kinesis.PartitionKey, v)
}

// store is where your own work goes.
func store(ctx context.Context, sensor string, v reading) error {
	if v.Celsius == nil {
		return errors.New("the reading of " + sensor + " has no temperature")
	}
	slog.InfoContext(ctx, "reading stored", "sensor", sensor, "reading", v.Number, "celsius", *v.Celsius)
	return nil
}
