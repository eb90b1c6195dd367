// s3upload checks uploads: for each one it writes an object that holds the
// upload's size and SHA-256. It handles uploads of the same object one at a
// time, and each upload once, however often S3 announces it. The results go to
// the same bucket, under results/ unless RESULT_PREFIX says otherwise.
//
// Event source: an S3 event notification for s3:ObjectCreated:*, preferably
// with a prefix or suffix filter that excludes the results, and a dead-letter
// queue or failure destination on the function. Besides the permissions for the
// lock table the function needs s3:GetObject and s3:PutObject.
package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"strings"

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
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatalf("s3upload: AWS configuration: %v", err)
	}
	c := checker{
		s3: s3.NewFromConfig(cfg, func(o *s3.Options) {
			// Local S3 servers seldom have a host name for each bucket.
			o.UsePathStyle = cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL")) != ""
		}),
		prefix: cmp.Or(os.Getenv("RESULT_PREFIX"), "results/"),
	}
	lambda.Start(middleware.WithLock(keyfuncs.S3Object, c.handle))
}

type checker struct {
	s3     *s3.Client
	prefix string
}

type result struct {
	Key    string `json:"key"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// handle receives events with exactly one record: S3 sends only those, and
// S3Object rejects all others.
func (c *checker) handle(ctx context.Context, e events.S3Event) error {
	bucket, key := e.Records[0].S3.Bucket.Name, e.Records[0].S3.Object.URLDecodedKey
	if strings.HasPrefix(key, c.prefix) {
		return nil // our own result, which would otherwise lead to the next one
	}
	upload, err := c.s3.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return fmt.Errorf("read the upload: %w", err)
	}
	defer upload.Body.Close()
	hash := sha256.New()
	size, err := io.Copy(hash, upload.Body)
	if err != nil {
		return fmt.Errorf("read the upload: %w", err)
	}
	document, err := json.Marshal(result{Key: key, Size: size, SHA256: hex.EncodeToString(hash.Sum(nil))})
	if err != nil {
		return err
	}
	to := c.prefix + key + ".json"
	_, err = c.s3.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &bucket, Key: &to, Body: bytes.NewReader(document), ContentType: aws.String("application/json"),
	})
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	slog.InfoContext(ctx, "upload checked", "bucket", bucket, "key", e.Records[0].S3.Object.Key, "size", size)
	return nil
}
