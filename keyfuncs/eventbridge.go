package keyfuncs

import (
	"context"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// EventBridgeEvent handles each event of a bus once. Name is source and id,
// Event the id, which EventBridge keeps in its retries. No Order.
func EventBridgeEvent(_ context.Context, e events.EventBridgeEvent) (lock.Key, error) {
	if err := fromEventBridge(e); err != nil {
		return lock.Key{}, err
	}
	if err := keyparts.Required("id", e.ID, "source", e.Source); err != nil {
		return lock.Key{}, err
	}
	return keyparts.Once("eventbridge", e.ID, e.Source), nil
}

// EventBridgeDetail takes the key from the detail of an event, decoded like the
// body in [SQSBody]. If that key has no Event, the id of the event becomes it.
// The error is a [*lock.NoKeyError] if there is neither, as after an input
// transformer that passes on no id: no delivery would be a duplicate.
func EventBridgeDetail[E any](inner Func[E]) Func[events.EventBridgeEvent] {
	notNil("EventBridgeDetail", inner)
	return func(ctx context.Context, e events.EventBridgeEvent) (lock.Key, error) {
		if err := fromEventBridge(e); err != nil && len(e.Detail) == 0 { // an input transformer may pass on no more than the detail
			return lock.Key{}, err
		}
		k, err := envelope(ctx, eventkind.EventBridge, "detail", e.Detail, e.ID, inner)
		if err == nil && k.Name != "" && k.Event == "" {
			return lock.Key{}, &lock.NoKeyError{Field: "id", Reason: "is missing, so a second delivery would not be recognised: let the input transformer of the rule pass it on, a test set it, or the key function of the detail give an Event"}
		}
		return k, err
	}
}

// EventBridgeSchedule runs a scheduled job once for each time it is due, and
// one run at a time, for EventBridge rules, and EventBridge Scheduler without
// an input of its own. Name is "schedule/" and the escaped ARN of the rule or
// schedule, Event the time it was due, such as 2026-11-22T03:00:00Z. No Order:
// a late run still runs.
func EventBridgeSchedule(_ context.Context, e events.EventBridgeEvent) (lock.Key, error) {
	if err := fromEventBridge(e); err != nil {
		return lock.Key{}, err
	}
	switch {
	case e.DetailType != "Scheduled Event":
		return lock.Key{}, &lock.NoKeyError{Field: "detail-type", Reason: "is not Scheduled Event: use EventBridgeEvent for other events"}
	case len(e.Resources) != 1 || e.Resources[0] == "":
		return lock.Key{}, &lock.NoKeyError{Field: "resources", Reason: "does not hold the ARN of one rule or schedule: if the event is the input of a schedule of yours, see docs/SOURCES.md#the-input-of-a-schedule"}
	case e.Time.IsZero():
		return lock.Key{}, keyparts.Missing("time")
	}
	return lock.Key{Name: keyparts.Name("schedule", e.Resources[0]), Event: e.Time.UTC().Format(time.RFC3339Nano)}, nil
}

// fromEventBridge refuses what decodes as an event of EventBridge, but has none
// of its fields.
func fromEventBridge(e events.EventBridgeEvent) error {
	if e.Source == "" && e.DetailType == "" {
		return &lock.NoKeyError{Field: "source", Reason: "is missing: " + keyparts.AnotherSource + "; if it is the input of a schedule of yours, see docs/SOURCES.md#the-input-of-a-schedule"}
	}
	return nil
}
