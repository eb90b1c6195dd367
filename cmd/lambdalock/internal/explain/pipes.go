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
		return nil, errNotObject
	case kind == eventkind.EventBridge:
		return nil, errors.New("this is an array of EventBridge events, as a custom event bus sends them: give its subscriber a MaxBatchSize of 1, and the key function is EventBridgeEvent; see docs/SOURCES.md#custom-event-buses")
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
