package keyfuncs

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// S3Object locks the object of an S3 notification that holds exactly one
// record, as S3 sends it: it is Single[events.S3Event]([S3Record]). An event
// without records, such as the s3:TestEvent, gives [ErrIgnore]: see
// docs/SOURCES.md#no-work.
func S3Object(ctx context.Context, e events.S3Event) (lock.Key, error) {
	return Single[events.S3Event](S3Record)(ctx, e)
}

// S3Record locks the object of one record of an S3 notification. Every event of
// an object is handled, each once and one at a time. Name is bucket and decoded
// object key. Event of ObjectCreated:* and ObjectRemoved:* is the sequencer;
// that of any other event is its name, sequencer, version id and request id,
// because it may repeat the sequencer of the upload. No Order: S3 does not
// deliver in order.
func S3Record(_ context.Context, r events.S3EventRecord) (lock.Key, error) {
	// https://repost.aws/knowledge-center/s3-duplicate-sqs-messages
	if err := keyparts.ForeignRecord(r); err != nil {
		return lock.Key{}, err
	}
	if r.S3.Bucket.Name == "" {
		return lock.Key{}, keyparts.Missing("s3.bucket.name")
	}
	key, err := objectKey(r.S3.Object)
	if err != nil {
		return lock.Key{}, err
	}
	event := identityOfRecord(r).event()
	if event == "" {
		return lock.Key{}, &lock.NoKeyError{Field: "s3.object.sequencer", Reason: "is missing, and so are versionId and responseElements[x-amz-request-id]: nothing tells this event from another of the same object"}
	}
	return lock.Key{Name: s3Name(r.S3.Bucket.Name, key), Event: event}, nil
}

// S3LatestRecord is [S3Record] for work where only the newest upload matters:
// an upload or deletion is stale, and skipped, once a later one of the same
// object is completed. Order is the sequencer; without one, the error is a
// [*lock.NoKeyError]. The deletion of one version by its id, and every event
// that is neither an upload nor a deletion, has no Order and is handled once.
func S3LatestRecord(ctx context.Context, r events.S3EventRecord) (lock.Key, error) {
	key, err := S3Record(ctx, r)
	id := identityOfRecord(r)
	oldVersion := id.kind == "ObjectRemoved:Delete" && id.version != ""
	if err != nil || !id.writes || oldVersion {
		return key, err
	}
	if r.S3.Object.Sequencer == "" {
		return lock.Key{}, &lock.NoKeyError{Field: "s3.object.sequencer", Reason: "is missing: uploads cannot be put in order without it; use S3Record to handle them all"}
	}
	if id.sequencer != "" {
		key.Order = s3Order(id.sequencer)
	}
	return key, nil
}

// s3Identity is what tells an event from others of the same object.
type s3Identity struct {
	kind, sequencer, version, request string
	// writes: the event is a write or deletion of the object, to which S3 gives
	// a sequencer of its own.
	writes bool
}

func identityOfRecord(r events.S3EventRecord) s3Identity {
	id := s3Identity{
		// S3 documents names without the prefix, and shows some with it.
		kind:      strings.TrimPrefix(r.EventName, "s3:"),
		sequencer: r.S3.Object.Sequencer, version: r.S3.Object.VersionID,
		request: r.ResponseElements["x-amz-request-id"],
	}
	id.dropSample()
	id.writes = strings.HasPrefix(id.kind, "ObjectCreated:") || strings.HasPrefix(id.kind, "ObjectRemoved:") || id.bare()
	return id
}

// samples are the sequencers of examples, which are the same for every upload
// and say nothing of their order.
var samples = []string{
	// AWS's documentation, and LocalStack, which has another one on EventBridge.
	// https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
	// https://github.com/localstack/localstack/blob/main/localstack-core/localstack/services/s3/notifications.py
	"0055AED6DCD90281E5", "0062E99A88DC407460",
	// The test events of Lambda's console and of AWS SAM, which people fill in.
	// https://github.com/aws/aws-sam-cli/blob/develop/samcli/lib/generated_sample_events/events/s3/S3Delete.json
	"0A1B2C3D4E5F678901",
}

// dropSample drops the sequencer of an example, if there is anything else to
// tell events apart by.
func (id *s3Identity) dropSample() {
	if slices.Contains(samples, id.sequencer) && (id.version != "" || id.request != "") {
		id.sequencer = ""
	}
}

// bare reports whether only the sequencer is known, as in events built by hand.
func (id s3Identity) bare() bool {
	return id.sequencer != "" && id.kind == "" && id.version == "" && id.request == ""
}

// event returns "" if nothing tells the event from another.
func (id s3Identity) event() string {
	switch {
	case id.writes && id.sequencer != "":
		return id.sequencer
	case id.sequencer != "":
		return keyparts.Name(url.PathEscape(id.kind), id.sequencer, id.version, id.request)
	case id.version == "" && id.request == "":
		return ""
	}
	return keyparts.Name(url.PathEscape(id.kind), id.version, id.request)
}

// s3Name is readable and unambiguous, since a bucket's name has no slash.
func s3Name(bucket, key string) string { return "s3/" + bucket + "/" + key }

// s3Order drops the zeros on the right: without them, sequencers compare as if
// they were padded. The leading mark keeps a sequencer of nothing but zeros
// from becoming empty, which would mean no Order.
func s3Order(sequencer string) string {
	return "s" + strings.TrimRight(sequencer, "0")
}

// objectKey returns the decoded key. Decoding JSON fills URLDecodedKey; an
// event built in a test has only Key.
func objectKey(o events.S3Object) (string, error) {
	if o.URLDecodedKey != "" {
		return o.URLDecodedKey, nil
	}
	if o.Key == "" {
		return "", keyparts.Missing("s3.object.key")
	}
	key, err := url.QueryUnescape(o.Key)
	if err != nil {
		return "", &lock.NoKeyError{Field: "s3.object.key", Reason: "is not a URL-encoded object key", Err: err}
	}
	return key, nil
}
