package s3store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/objectstore"
)

// Client is the part of *s3.Client that a store uses.
type Client interface {
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	ListObjectsV2(context.Context, *s3.ListObjectsV2Input, ...func(*s3.Options)) (*s3.ListObjectsV2Output, error)
}

// New returns a store that keeps its rows in a bucket, under a prefix: a folder
// such as "locks" or "locks/", or empty for the whole bucket. Requests ignore
// the client's retries, because package lock retries itself. Before the first
// write to an address that is not S3's, or to an access point, the store runs
// [objectstore.Probe]; its Check method does that before the first lock is
// needed.
func New(client Client, bucket, prefix string) *objectstore.Store {
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	return objectstore.New(&objects{client: client, bucket: bucket, prefix: prefix})
}

// objects implements [objectstore.Objects].
type objects struct {
	client         Client
	bucket, prefix string
	probe          objectstore.Probe
}

// options sets the options of every request. S3 requires a checksum for writes
// to a bucket with a default retention period; other servers may not support
// checksums.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock-managing.html
func options(o *s3.Options) {
	o.Retryer = aws.NopRetryer{}
	o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported
	o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	if o.BaseEndpoint == nil {
		return
	}
	if u, err := url.Parse(*o.BaseEndpoint); err != nil || !amazons(u.Hostname()) {
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	}
}

// patiently has the SDK repeat a list that fails. Package lock, which repeats
// the requests of locks, does not list.
func patiently(o *s3.Options) { o.Retryer = retry.NewStandard() }

func (o *objects) String() string {
	if o.prefix == "" {
		return "S3 bucket " + o.bucket
	}
	return "S3 bucket " + o.bucket + ", prefix " + o.prefix
}

// largest is a size that no row exceeds. A larger object is not a row.
const largest = 8 << 20

// Get implements [objectstore.Objects].
func (o *objects) Get(ctx context.Context, key string) (objectstore.Object, error) {
	if err := o.named(); err != nil {
		return objectstore.Object{}, err
	}
	out, err := o.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &o.bucket, Key: aws.String(o.prefix + key)}, options)
	if err != nil {
		return objectstore.Object{}, o.classifyGet(err)
	}
	defer out.Body.Close()
	body, err := io.ReadAll(io.LimitReader(out.Body, largest))
	if err != nil {
		return objectstore.Object{}, o.classify("s3:GetObject", err)
	}
	now, _ := awsmiddleware.GetServerTime(out.ResultMetadata)
	return objectstore.Object{Body: body, Version: aws.ToString(out.ETag), Modified: aws.ToTime(out.LastModified), Now: now}, nil
}

// Put implements [objectstore.Objects].
func (o *objects) Put(ctx context.Context, key string, body []byte, version string) (string, error) {
	if err := o.named(); err != nil {
		return "", err
	}
	if o.probe.Passed() {
		return o.put(ctx, key, body, version)
	}
	next, err := o.put(ctx, key, body, version, guard(o.trust))
	if !errors.Is(err, errUnproven) {
		return next, err
	}
	if err := o.probe.Run(ctx, unguarded{o}); err != nil {
		return "", err
	}
	return o.put(ctx, key, body, version)
}

func (o *objects) put(ctx context.Context, key string, body []byte, version string, more ...func(*s3.Options)) (string, error) {
	in := &s3.PutObjectInput{
		Bucket: &o.bucket, Key: aws.String(o.prefix + key), Body: bytes.NewReader(body), ContentType: aws.String("application/json"),
	}
	if version == "" {
		in.IfNoneMatch = aws.String("*")
	} else {
		in.IfMatch = &version
	}
	out, err := o.client.PutObject(ctx, in, append(more, options)...)
	if err != nil {
		return "", o.classifyPut(err, version)
	}
	return aws.ToString(out.ETag), nil
}

// Keys implements [objectstore.Objects].
func (o *objects) Keys(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := o.named(); err != nil {
			yield("", err)
			return
		}
		pages := s3.NewListObjectsV2Paginator(o.client, &s3.ListObjectsV2Input{Bucket: &o.bucket, Prefix: &o.prefix})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx, options, patiently)
			if err != nil {
				yield("", o.classify("s3:ListBucket", err))
				return
			}
			for _, object := range page.Contents {
				if !yield(strings.TrimPrefix(aws.ToString(object.Key), o.prefix), nil) {
					return
				}
			}
		}
	}
}

// named returns an error if the bucket name is empty, which the SDK would
// report as no response, or the client is nil, which would panic.
func (o *objects) named() error {
	if client, ok := o.client.(*s3.Client); o.client == nil || ok && client == nil {
		return &driver.ConfigError{Reason: "the S3 client is nil: pass s3.NewFromConfig(cfg) to s3store.New"}
	}
	if o.bucket == "" {
		return &driver.ConfigError{Reason: "no S3 bucket for the locks: pass its name to s3store.New"}
	}
	return unfit(o.bucket)
}
