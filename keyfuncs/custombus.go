package keyfuncs

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
)

// CustomBusEvent handles each event of an EventBridge Custom Event Bus once.
// Name and Event are the id that EventBridge assigned, which retries and
// replays keep. Of an event without metadata they are those of
// [EventBridgeEvent]; if it has no envelope either, the error is a
// [*lock.NoKeyError]. No Order.
func CustomBusEvent(ctx context.Context, e awsevents.CustomBusEvent) (lock.Key, error) {
	if id := e.SystemMetadata.EventID; id != "" {
		return keyparts.Once("custombus", id), nil
	}
	if eventkind.Of(e.Data) != eventkind.EventBridge {
		return lock.Key{}, bareEvent(e.Data)
	}
	var inner events.EventBridgeEvent
	if err := json.Unmarshal(e.Data, &inner); err != nil {
		return lock.Key{}, &lock.NoKeyError{Field: "event", Reason: "is not an EventBridge event", Err: err}
	}
	return EventBridgeEvent(ctx, inner)
}

// CustomBusGroup works on one event of an event group at a time, each once.
// Name is the group, Event the id that EventBridge assigned. The subscriber
// needs the transformer WITH_METADATA. No Order, so that an event which is
// redriven after later ones of its group is handled; a completed one is
// recognised among the last of its group, see RememberEvents of [lock.Options].
func CustomBusGroup(_ context.Context, e awsevents.CustomBusEvent) (lock.Key, error) {
	// No Order: the sequence number is the position on the bus, but an event does
	// not show that it comes in that order. The subscriber may be unordered, the
	// group may be one of another account or bus with the same name, and the
	// redrive of AWS replays an event after later ones of its group.
	// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-custom-bus-ordering.html
	// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-custom-bus-retry.html#eb-custom-bus-retry-redrive
	id, group := e.SystemMetadata.EventID, e.SystemMetadata.EventGroupID
	if id == "" && group == "" {
		return lock.Key{}, bareEvent(e.Data)
	}
	if err := keyparts.Required("SystemMetadata.aws:EventId", id, "SystemMetadata.EventGroupId", group); err != nil {
		return lock.Key{}, err
	}
	return lock.Key{Name: keyparts.Name("custombusgroup", group), Event: id}, nil
}

// CustomBusData takes the key of one event from its data, decoded like the body
// in [SQSBody]; for what was published with PutEvents, E is
// events.EventBridgeEvent:
//
//	CustomBusData(EventBridgeDetail(byOrderID))
//
// If that key has no Event, the id that EventBridge assigned, or that of the
// envelope, becomes it; without one, the error is a [*lock.NoKeyError].
func CustomBusData[E any](inner Func[E]) Func[awsevents.CustomBusEvent] {
	notNil("CustomBusData", inner)
	return func(ctx context.Context, e awsevents.CustomBusEvent) (lock.Key, error) {
		k, err := envelope(ctx, eventkind.CustomBus, "Data", e.Data, cmp.Or(e.SystemMetadata.EventID, envelopeID(e.Data)), inner)
		if err == nil && k.Event == "" && k.Name != "" {
			err = bareEvent(e.Data)
		}
		return k, err
	}
}

// envelopeID returns the id of an EventBridge event, or "".
func envelopeID(data []byte) string {
	var e struct {
		ID string `json:"id"`
	}
	if eventkind.Of(data) != eventkind.EventBridge || json.Unmarshal(data, &e) != nil {
		return ""
	}
	return e.ID
}

// bareEvent returns the error for an event of which a retry cannot be told from
// another event. It may come from another source than a bus.
func bareEvent(data []byte) error {
	reason := "without it the event has no id: give the subscriber the transformer WITH_METADATA, or take the id from the data, with CustomBusData(Once(byID))"
	if kind := eventkind.Of(data); kind != nil && kind != eventkind.EventBridge {
		reason = "the event " + kind.Refusal(nil) + "; if a bus sent it, give the subscriber the transformer WITH_METADATA"
	}
	return &lock.NoKeyError{Field: "SystemMetadata", Reason: "is missing, and " + reason, Missing: true}
}
