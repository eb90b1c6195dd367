package keyfuncs

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// EventBridgeS3Object is [S3Object] for the events that S3 sends to
// EventBridge. Event is the sequencer of Object Created and Object Deleted, the
// same as when S3 reports that in any other way. For deletions by a lifecycle
// rule and all other events, it is detail type, sequencer, version id and
// request id.
func EventBridgeS3Object(_ context.Context, e events.EventBridgeEvent) (lock.Key, error) {
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
	if err := fromEventBridge(e); err != nil {
		return lock.Key{}, err
	}
	if e.Source != "aws.s3" {
		return lock.Key{}, &lock.NoKeyError{Field: "source", Reason: "is not aws.s3: this is an event of another source, and its key function is EventBridgeEvent"}
	}
	// CloudTrail sends what it recorded under the name of the service.
	// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-service-event-cloudtrail.html
	if strings.HasSuffix(e.DetailType, " via CloudTrail") {
		return lock.Key{}, &lock.NoKeyError{Field: "detail-type", Reason: "is that of CloudTrail, which reports calls of S3: the key function of its events is EventBridgeEvent; to get those of S3, let the rule match its detail types, such as Object Created"}
	}
	if err := json.Unmarshal(e.Detail, &d); err != nil {
		return lock.Key{}, &lock.NoKeyError{Field: "detail", Reason: "is not the detail of an S3 event", Err: err}
	}
	if err := keyparts.Required("detail.bucket.name", d.Bucket.Name, "detail.object.key", d.Object.Key); err != nil {
		return lock.Key{}, err
	}
	id := s3Identity{kind: e.DetailType, sequencer: d.Object.Sequencer, version: d.Object.VersionID, request: d.RequestID}
	id.dropSample()
	id.writes = id.kind == "Object Created" || id.kind == "Object Deleted" && d.Reason != "Lifecycle Expiration" || id.bare()
	event := id.event()
	if event == "" {
		return lock.Key{}, &lock.NoKeyError{Field: "detail.object.sequencer", Reason: "is missing, and so are version-id and request-id: nothing tells this event from another of the same object"}
	}
	return lock.Key{Name: s3Name(d.Bucket.Name, d.Object.Key), Event: event}, nil
}
