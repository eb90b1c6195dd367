package keyfuncs

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/lock"
)

// S3Object locks the object of an S3 notification with exactly one record, and
// recognises deliveries of the same upload. Every upload of an object is handled,
// each once and one at a time; see [S3Latest] to skip those that were overtaken.
//
// Name is bucket and decoded object key. Event is the sequencer, which S3 repeats
// in duplicates of a notification; where there is none (S3 sends it for PUT and
// DELETE only), event name, version id and request id together. No Order: S3 does
// not deliver in order, and an older upload is still an upload.
//
// An event without records gives [ErrIgnore]: that is what the s3:TestEvent
// looks like, which S3 sends when a notification is set up. So does an event of
// another shape: for those behind SNS, SQS or EventBridge see [S3ViaSNS], [S3ViaSQS],
// [S3ViaSNSAndSQS] and [S3ViaEventBridge].
//
// Sources: https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html,
// https://repost.aws/knowledge-center/s3-duplicate-sqs-messages.
func S3Object(ctx context.Context, e events.S3Event) (lock.Key, error) {
	return oneS3Record(ctx, e, S3Record)
}

// S3Latest is [S3Object] for work of which only the newest upload matters: an
// event that was overtaken by a later one of the same object is skipped. Order is
// the sequencer, compared as S3 says: the shorter one padded with zeros at its
// right. A notification without sequencer is refused with a [*lock.KeyError].
//
// Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html.
func S3Latest(ctx context.Context, e events.S3Event) (lock.Key, error) {
	return oneS3Record(ctx, e, S3LatestRecord)
}

// S3Record is [S3Object] for one record of a notification.
func S3Record(_ context.Context, r events.S3EventRecord) (lock.Key, error) {
	object := r.S3.Object
	if r.S3.Bucket.Name == "" {
		return lock.Key{}, missing("s3.bucket.name")
	}
	key, err := objectKey(object)
	if err != nil {
		return lock.Key{}, err
	}
	event := s3Event(object.Sequencer, r.EventName, object.VersionID, r.ResponseElements["x-amz-request-id"])
	if event == "" {
		return lock.Key{}, &lock.KeyError{Field: "s3.object.sequencer", Reason: "is missing, and so are versionId and responseElements[x-amz-request-id]: nothing tells this event from another of the same object"}
	}
	return lock.Key{Name: s3Name(r.S3.Bucket.Name, key), Event: event}, nil
}

// S3LatestRecord is [S3Latest] for one record of a notification.
func S3LatestRecord(ctx context.Context, r events.S3EventRecord) (lock.Key, error) {
	if r.S3.Object.Sequencer == "" {
		return lock.Key{}, &lock.KeyError{Field: "s3.object.sequencer", Reason: "is missing: S3 sends it for uploads and deletions only; use S3Object for other events"}
	}
	key, err := S3Record(ctx, r)
	key.Order = s3Order(r.S3.Object.Sequencer)
	return key, err
}

// s3Event is the identity of an event, or empty if nothing tells it from another.
func s3Event(sequencer, kind, version, request string) string {
	if sequencer != "" || version == "" && request == "" {
		return sequencer
	}
	return named(url.PathEscape(kind), version, request)
}

// s3Name is readable and unambiguous, since a bucket's name has no slash.
func s3Name(bucket, key string) string { return "s3/" + bucket + "/" + key }

// s3Order: to compare two numbers padded with zeros at the right is to compare
// them without those zeros. The leading mark keeps an order of only zeros from
// reading as none.
func s3Order(sequencer string) string {
	return "s" + strings.TrimRight(sequencer, "0")
}

// objectKey is the decoded key. Decoding JSON fills URLDecodedKey; an event built
// in a test has only Key.
func objectKey(o events.S3Object) (string, error) {
	if o.URLDecodedKey != "" {
		return o.URLDecodedKey, nil
	}
	if o.Key == "" {
		return "", missing("s3.object.key")
	}
	key, err := url.QueryUnescape(o.Key)
	if err != nil {
		return "", &lock.KeyError{Field: "s3.object.key", Reason: "is not a URL-encoded object key", Err: err}
	}
	return key, nil
}

func oneS3Record(ctx context.Context, e events.S3Event, key Func[events.S3EventRecord]) (lock.Key, error) {
	if len(e.Records) == 0 {
		return lock.Key{}, fmt.Errorf("the S3 event has no records: an s3:TestEvent, or an event of another shape, as behind SNS, SQS or EventBridge: %w", ErrIgnore)
	}
	return only(ctx, "Records", e.Records, key, "wrap a handler of one record with middleware.EachS3Record")
}
