package awsevents

import (
	"bytes"
	"encoding/json"
)

// CustomBusEvents is what a subscriber of an EventBridge Custom Event Bus sends
// to a function: an array of events, or one event alone if its MaxBatchSize is
// 1.
//
// Source:
// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-custom-bus-target-lambda.html.
type CustomBusEvents []CustomBusEvent

// CustomBusEvent is an event of an EventBridge Custom Event Bus. With the
// transformer WITH_METADATA, the subscriber sends all of it; with RAW, the
// default, only its Data, and the other fields are empty.
//
// Source:
// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-custom-bus-addressing.html.
type CustomBusEvent struct {
	// Data is the envelope that [events.EventBridgeEvent] describes if the event
	// was published with PutEvents, and whatever was published with PutRawEvents.
	//
	// [events.EventBridgeEvent]: https://pkg.go.dev/github.com/aws/aws-lambda-go/events#EventBridgeEvent
	Data           json.RawMessage         `json:"Data"`
	Metadata       map[string]string       `json:"Metadata,omitempty"` // of the publisher
	SystemMetadata CustomBusSystemMetadata `json:"SystemMetadata"`
}

// CustomBusSystemMetadata is what EventBridge says about an event.
type CustomBusSystemMetadata struct {
	EventID         string `json:"aws:EventId,omitempty"`
	EventGroupID    string `json:"EventGroupId,omitempty"`
	DeduplicationID string `json:"DeduplicationId,omitempty"`
	SequenceNumber  string `json:"aws:SequenceNumber,omitempty"` // a decimal number, the position on the bus
	DeliveryType    string `json:"aws:DeliveryType,omitempty"`   // LIVE or REPLAY
	IngestionTime   string `json:"aws:IngestionTime,omitempty"`
	ContentType     string `json:"ContentType,omitempty"`
	Source          string `json:"aws:Source,omitempty"`     // of PutEvents, AWS services and partners
	DetailType      string `json:"aws:DetailType,omitempty"` // the same
	SchemaID        string `json:"aws:SchemaId,omitempty"`   // of Avro and Protobuf
	RegistryType    string `json:"aws:RegistryType,omitempty"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (e *CustomBusEvents) UnmarshalJSON(b []byte) error {
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] != '[' {
		one := make(CustomBusEvents, 1)
		*e = one
		return json.Unmarshal(b, &one[0])
	}
	return json.Unmarshal(b, (*[]CustomBusEvent)(e))
}

// UnmarshalJSON implements [json.Unmarshaler]. Data that is not in an envelope
// may be any JSON, so it fails for none.
func (e *CustomBusEvent) UnmarshalJSON(b []byte) error {
	type plain CustomBusEvent // without this method
	var whole plain
	// Only aws:DeliveryType is always there.
	if json.Unmarshal(b, &whole) == nil && whole.SystemMetadata.DeliveryType != "" {
		*e = CustomBusEvent(whole)
		return nil
	}
	*e = CustomBusEvent{Data: bytes.Clone(b)}
	return nil
}
