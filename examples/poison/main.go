// poison stores sensor readings from a stream, each once and in the order of
// the shard. A record that can never be stored, because it is malformed, is put
// into a bucket at once, and the shard goes on. Without that it would stop its
// shard until Lambda gives the record up.
//
// Event source: a Kinesis stream with ReportBatchItemFailures,
// BisectBatchOnFunctionError, MaximumRetryAttempts, MaximumRecordAgeInSeconds
// and a failure destination on the event source mapping. Besides the
// permissions for the lock table the function needs s3:PutObject on
// ARCHIVE_BUCKET.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	a := archive{bucket: os.Getenv("ARCHIVE_BUCKET")}
	if a.bucket == "" {
		log.Fatal("poison: set ARCHIVE_BUCKET in the function's environment")
	}
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatalf("poison: AWS configuration: %v", err)
	}
	a.client = s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true }) // also for a local endpoint
	lambda.Start(middleware.EachKinesisRecord(keyfuncs.KinesisRecord, handle, middleware.OnFailed(a.putAside)))
}

type reading struct {
	Number  json.Number `json:"reading"`
	Celsius *float64    `json:"celsius"`
}

// handle is where your own work goes. It returns a permanent error only if the
// record itself is wrong, and not if a service does not answer.
func handle(ctx context.Context, r events.KinesisEventRecord) error {
	var v reading
	if err := json.Unmarshal(r.Kinesis.Data, &v); err != nil {
		return middleware.Permanent(err)
	}
	if v.Celsius == nil {
		return middleware.Permanent(errors.New("the reading has no temperature"))
	}
	slog.InfoContext(ctx, "reading stored", "sensor", r.Kinesis.PartitionKey, "reading", v.Number)
	return nil
}

type archive struct {
	client *s3.Client
	bucket string
}

// putAside acknowledges a record once it is in the bucket. Every other one that
// failed comes back.
func (a *archive) putAside(ctx context.Context, failed []*middleware.Failed[events.KinesisEventRecord]) {
	for _, f := range failed {
		if !errors.As(f.Err, new(*middleware.PermanentError)) {
			continue
		}
		_, err := a.client.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &a.bucket, Key: aws.String("poison/" + f.Record.EventID), Body: bytes.NewReader(f.Record.Kinesis.Data),
		})
		if err != nil {
			slog.ErrorContext(ctx, "a malformed reading stops its shard", "error", err)
			continue
		}
		slog.ErrorContext(ctx, "reading put aside", "sensor", f.Record.Kinesis.PartitionKey, "error", f.Err)
		f.Err = nil
	}
}
