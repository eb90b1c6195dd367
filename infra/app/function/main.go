// Command function handles each upload once, and the uploads of one object one
// at a time.
package main

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

func main() {
	// The namespace of the stack, which limits the permission to it.
	lambda.Start(middleware.EachS3Record(keyfuncs.S3Record, handle, middleware.Namespace("uploads")))
}

func handle(ctx context.Context, r events.S3EventRecord) error {
	// The key as S3 encodes it: decoded, the name of an upload could be a line that
	// raises an alarm.
	slog.InfoContext(ctx, "upload", "bucket", r.S3.Bucket.Name, "key", r.S3.Object.Key, "bytes", r.S3.Object.Size)
	return nil
}
