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
// recognises deliveries of the same event. Every event of an object is handled,
// each once and one at a time; see [S3Latest] to skip uploads that are stale.
//
// Name is bucket and decoded object key. Event of ObjectCreated:* and
// ObjectRemoved:* is the sequencer, which S3 repeats in duplicates of a
// notification. Every other event, such as ObjectRestore:* and Replication:*, may
// carry the sequencer of the upload that it concerns: its Event is event name,
// sequencer if there is one, version id and request id together. So is that of an
// event without a name, which S3 does not send, unless it has the sequencer alone,
// as one that is built in a unit test. No Order: S3 does not deliver in order, and
// an older upload is still an upload.
//
// An event without records gives [ErrIgnore]: that is what the s3:TestEvent
// looks like, which S3 sends when a notification is set up. Once decoded, any other
// JSON object without records looks the same; [S3ViaSQS] and its like and
// middleware.EachS3Record see the JSON, and ignore nothing but the s3:TestEvent.
//
// Sources: https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html,
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication-metrics-events.html,
// https://repost.aws/knowledge-center/s3-duplicate-sqs-messages.
func S3Object(ctx context.Context, e events.S3Event) (lock.Key, error) {
	return oneS3Record(ctx, e, S3Record)
}

// S3Latest is [S3Object] for work of which only the newest upload matters: an
// upload or deletion is skipped if a later one of the same object was completed.
// Order is the sequencer, compared as S3 says: the shorter one padded with zeros at
// its right. An ObjectCreated:* or ObjectRemoved:* without sequencer is refused with
// a [*lock.KeyError]. Every other event has no Order and is handled, once: what
// happens to an object that is there, such as a restore, has no place among uploads.
//
// Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html.
func S3Latest(ctx context.Context, e events.S3Event) (lock.Key, error) {
	return oneS3Record(ctx, e, S3LatestRecord)
}

// S3Record is [S3Object] for one record of a notification.
func S3Record(_ context.Context, r events.S3EventRecord) (lock.Key, error) {
	if err := sourceOf(r); err != nil {
		return lock.Key{}, err
	}
	if r.S3.Bucket.Name == "" {
		return lock.Key{}, missing("s3.bucket.name")
	}
	key, err := objectKey(r.S3.Object)
	if err != nil {
		return lock.Key{}, err
	}
	event := identityOfRecord(r).event()
	if event == "" {
		return lock.Key{}, &lock.KeyError{Field: "s3.object.sequencer", Reason: "is missing, and so are versionId and responseElements[x-amz-request-id]: nothing tells this event from another of the same object"}
	}
	return lock.Key{Name: s3Name(r.S3.Bucket.Name, key), Event: event}, nil
}

// S3LatestRecord is [S3Latest] for one record of a notification.
func S3LatestRecord(ctx context.Context, r events.S3EventRecord) (lock.Key, error) {
	key, err := S3Record(ctx, r)
	if err != nil || !identityOfRecord(r).writes {
		return key, err
	}
	if r.S3.Object.Sequencer == "" {
		return lock.Key{}, &lock.KeyError{Field: "s3.object.sequencer", Reason: "is missing: uploads cannot be put in order without it; use S3Object to handle them all"}
	}
	key.Order = s3Order(r.S3.Object.Sequencer)
	return key, nil
}

// s3Identity is what tells an event from others of the same object.
type s3Identity struct {
	kind, sequencer, version, request string
	// writes: the event is a write or deletion of the object, to which S3 gives a
	// sequencer of its own.
	writes bool
}

func identityOfRecord(r events.S3EventRecord) s3Identity {
	id := s3Identity{
		// S3 documents names without the prefix, and shows some with it.
		kind:      strings.TrimPrefix(r.EventName, "s3:"),
		sequencer: r.S3.Object.Sequencer, version: r.S3.Object.VersionID,
		request: r.ResponseElements["x-amz-request-id"],
	}
	id.writes = strings.HasPrefix(id.kind, "ObjectCreated:") || strings.HasPrefix(id.kind, "ObjectRemoved:") || id.bare()
	return id
}

// bare tells that only the sequencer is known, as in events built by hand.
func (id s3Identity) bare() bool {
	return id.sequencer != "" && id.kind == "" && id.version == "" && id.request == ""
}

// event is empty if nothing tells the event from another.
func (id s3Identity) event() string {
	switch {
	case id.writes && id.sequencer != "":
		return id.sequencer
	case id.sequencer != "":
		return named(url.PathEscape(id.kind), id.sequencer, id.version, id.request)
	case id.version == "" && id.request == "":
		return ""
	}
	return named(url.PathEscape(id.kind), id.version, id.request)
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
		return lock.Key{}, fmt.Errorf("the S3 event has no records: an s3:TestEvent, or an event of another source, which a decoded event does not show: %w", ErrIgnore)
	}
	return only(ctx, "Records", e.Records, key, "wrap a handler of one record with middleware.EachS3Record")
}
