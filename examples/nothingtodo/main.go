// nothingtodo handles each upload once. When S3 announces an upload again, or
// Lambda delivers the announcement again, it logs "nothing to do" and does not
// call the handler. If the first delivery is still at work, the second one
// fails instead, and Lambda tries it again: the first may still fail.
//
// Event source: an S3 event notification for s3:ObjectCreated:*, and a
// dead-letter queue or failure destination on the function.
package main

import (
	"context"
	"log/slog"
	"net/url"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	lambda.Start(middleware.WithLock(keyfuncs.S3Object, handle, middleware.Observe(say)))
}

// handle receives events with exactly one record: S3 sends only those, and
// S3Object rejects all others.
func handle(ctx context.Context, e events.S3Event) error {
	object := e.Records[0].S3.Object
	slog.InfoContext(ctx, "upload handled", "key", object.Key, "size", object.Size) // your own work
	return nil
}

// say logs that the event was completed before. The name of the lock has the
// bucket and the key of the object. Escaped, it cannot have the words that an
// alarm on log lines hears.
func say(ctx context.Context, o lock.Observation) {
	if o.Outcome == lock.OutcomeAlreadyCompleted {
		slog.InfoContext(ctx, "nothing to do", "object", url.PathEscape(o.Key.Name))
	}
}
