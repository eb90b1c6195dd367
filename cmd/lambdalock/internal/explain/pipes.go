package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
)

// errNotObject is for JSON that is neither an event nor an array of a pipe.
var errNotObject = errors.New("this is not a JSON object, as the events of all AWS sources but EventBridge's pipes and custom event buses are: see jmespath.Path and jmespath.Payload for JSON of your own")

const pipesSection = "docs/SOURCES.md#eventbridge-pipes"

// explainArray asks the key functions about what a pipe sends: an array of
// records, without the event around them.
// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-pipes-event-source.html
func explainArray(ctx context.Context, records []json.RawMessage) (*Event, error) {
	if len(records) == 0 {
		return nil, errNotObject
	}
	kind := eventkind.Of(records[0])
	switch {
	case kind == nil:
		return nil, errors.New("this is an array, as pipes and custom event buses of EventBridge send it, of records without an id: if it comes from a custom event bus, give the subscriber the transformer WITH_METADATA; see docs/SOURCES.md#custom-event-buses")
	case kind == eventkind.EventBridge, kind == eventkind.CustomBus:
		return explainBus(ctx, records), nil
	case kind.Each() == "":
		return nil, fmt.Errorf("this is an array of an EventBridge pipe, with records of %s, for which a key function of yours is needed: see %s", kind, pipesSection)
	}
	e := &Event{Kind: "an array of an EventBridge pipe, with records of " + kind.String()}
	for _, p := range listed("", records) {
		if kind == eventkind.Kinesis {
			p.doc = nested(p.doc)
		}
		r := explainRecord(ctx, p, new(eventkind.Kind), byKind[kind], false)
		for i := range r.Keys {
			r.Keys[i].Function += ", with the adapter in " + pipesSection
		}
		e.Records = append(e.Records, r)
	}
	return e, nil
}

// explainBus asks the key functions about what a subscriber of a Custom Event
// Bus sends, with metadata or without.
func explainBus(ctx context.Context, records []json.RawMessage) *Event {
	e := &Event{Kind: "an array of events of an EventBridge Custom Event Bus"}
	for _, p := range listed("", records) {
		e.Records = append(e.Records, explainRecord(ctx, p, eventkind.CustomBus, byKind[eventkind.CustomBus], false))
	}
	return e
}

// nested moves what a pipe puts into a record of Kinesis itself to where Lambda
// has it.
func nested(record json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(record, &members) != nil || members["kinesis"] != nil {
		return record
	}
	members["kinesis"] = record
	doc, err := json.Marshal(members)
	if err != nil {
		return record
	}
	return doc
}
