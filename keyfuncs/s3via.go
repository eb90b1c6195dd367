package keyfuncs

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/lock"
)

// S3ViaSQS is [S3Object] for notifications that come through a queue, in events of
// exactly one message. The key is that of the object and the upload, so it is the
// same whichever way a notification came, and however often it was queued. An
// s3:TestEvent gives [ErrIgnore]; a body without an S3 notification is a
// [*lock.KeyError] that names the key function for it, if there is one.
//
// Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html.
func S3ViaSQS(ctx context.Context, e events.SQSEvent) (lock.Key, error) {
	return oneSQSMessage(ctx, e, S3ViaSQSRecord)
}

// S3ViaSQSRecord is [S3ViaSQS] for one message of a batch.
func S3ViaSQSRecord(ctx context.Context, m events.SQSMessage) (lock.Key, error) {
	return inBody(ctx, m, S3Object)
}

// S3ViaSNS is [S3Object] for notifications that come through a topic.
//
// Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html.
func S3ViaSNS(ctx context.Context, e events.SNSEvent) (lock.Key, error) {
	return oneSNSRecord(ctx, e, S3ViaSNSRecord)
}

// S3ViaSNSRecord is [S3ViaSNS] for one record.
func S3ViaSNSRecord(ctx context.Context, r events.SNSEventRecord) (lock.Key, error) {
	return SNSBody(S3Object)(ctx, r)
}

// S3ViaSNSAndSQS is [S3Object] for notifications that come through a topic and then
// a queue, in events of exactly one message. With raw message delivery, the topic
// leaves no trace in the message: use [S3ViaSQS].
//
// Source: https://docs.aws.amazon.com/sns/latest/dg/sns-large-payload-raw-message-delivery.html.
func S3ViaSNSAndSQS(ctx context.Context, e events.SQSEvent) (lock.Key, error) {
	return oneSQSMessage(ctx, e, S3ViaSNSAndSQSRecord)
}

// S3ViaSNSAndSQSRecord is [S3ViaSNSAndSQS] for one message of a batch.
func S3ViaSNSAndSQSRecord(ctx context.Context, m events.SQSMessage) (lock.Key, error) {
	return inBody(ctx, m, notification(S3Object))
}

// S3ViaEventBridge is [S3Object] for the events that S3 sends to EventBridge. Their
// shape differs, and their object keys are not URL-encoded. Event is the sequencer
// of Object Created and Object Deleted, and so that of the same upload or deletion on
// every other way. A deletion by a lifecycle rule is not among them: its sequencer
// may be midnight of the day, for all versions that expire then. Of that and of all
// other events, Event is the detail type, sequencer if there is one, version id and
// request id together.
//
// Sources: https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html,
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-mapping-troubleshooting.html.
func S3ViaEventBridge(_ context.Context, e events.EventBridgeEvent) (lock.Key, error) {
	var d struct {
		Bucket struct {
			Name string `json:"name"`
		} `json:"bucket"`
		Object struct {
			Key       string `json:"key"`
			VersionID string `json:"version-id"`
			Sequencer string `json:"sequencer"`
		} `json:"object"`
		RequestID string `json:"request-id"`
		Reason    string `json:"reason"`
	}
	if e.Source != "aws.s3" {
		return lock.Key{}, &lock.KeyError{Field: "source", Reason: "is not aws.s3: this is an event of another source, and its key function is EventBridge"}
	}
	if err := json.Unmarshal(e.Detail, &d); err != nil {
		return lock.Key{}, &lock.KeyError{Field: "detail", Reason: "is not that of an S3 event", Err: err}
	}
	switch {
	case d.Bucket.Name == "":
		return lock.Key{}, missing("detail.bucket.name")
	case d.Object.Key == "":
		return lock.Key{}, missing("detail.object.key")
	}
	id := s3Identity{kind: e.DetailType, sequencer: d.Object.Sequencer, version: d.Object.VersionID, request: d.RequestID}
	id.writes = id.kind == "Object Created" || id.kind == "Object Deleted" && d.Reason != "Lifecycle Expiration" || id.bare()
	event := id.event()
	if event == "" {
		return lock.Key{}, &lock.KeyError{Field: "detail.object.sequencer", Reason: "is missing, and so are version-id and request-id: nothing tells this event from another of the same object"}
	}
	return lock.Key{Name: s3Name(d.Bucket.Name, d.Object.Key), Event: event}, nil
}
