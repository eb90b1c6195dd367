// thumbnail makes a thumbnail of each picture. Only the newest upload of an
// object matters, so an older one that arrives later is skipped. To make one
// twice does no harm, and to make none does: so if the lock table cannot be
// reached, the handler runs without a lock. Metrics tell how often that was.
//
// Event source: an S3 notification with s3:ObjectCreated:* and a filter, so
// that the function's own results do not invoke it again. Add a failure
// destination to the function, and an alarm on the metric Unlocked.
package main

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/telemetry/emf"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	lambda.Start(middleware.EachS3Record(keyfuncs.S3LatestRecord, resize, middleware.FailOpen(), emf.Metrics(nil)))
}

// resize is where your own work goes. It must be safe to repeat, also at the
// same time.
func resize(ctx context.Context, r events.S3EventRecord) error {
	slog.InfoContext(ctx, "thumbnail made", "key", r.S3.Object.Key, "sequencer", r.S3.Object.Sequencer)
	return nil
}
