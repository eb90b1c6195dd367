package middleware

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/lock"
)

// KinesisRecords is an [events.KinesisEvent] that shows whether it belongs to a
// tumbling window, which [EachKinesisRecord] refuses. In a test, write
// KinesisRecords{KinesisEvent: e}.
type KinesisRecords struct {
	events.KinesisEvent
	Window json.RawMessage `json:"window,omitempty"` // nil: none
}

// DynamoDBRecords is [KinesisRecords] for a DynamoDB stream: in a test, write
// DynamoDBRecords{DynamoDBEvent: e}.
type DynamoDBRecords struct {
	events.DynamoDBEvent
	Window json.RawMessage `json:"window,omitempty"` // nil: none
}

// refuseWindow returns an error if an event belongs to a tumbling window. Its
// answer would have to hold the state of the window, which only a handler of
// the whole event can know, and without which Lambda delivers the batch again
// until its records expire.
func (w *wrapper) refuseWindow(ctx context.Context, window json.RawMessage) error {
	if !eventkind.IsWindow(window) {
		return nil
	}
	ctx, done := w.measure(ctx)
	defer done()
	refused := &lock.NoKeyError{Field: "window", Reason: eventkind.WindowRefusal}
	w.report(ctx, lock.Observation{Outcome: lock.OutcomeRefused, Err: refused})
	return refused
}
