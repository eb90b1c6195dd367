package jmespath

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"github.com/lambdalock/lambdalock/internal/event/canonical"
	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/lock"
)

// Payload handles each payload once, for sources that give their events no
// identity. Name and Event are a digest of the JSON, in which the order of
// members, white space and the spelling of numbers and strings do not count.
// Two events that say the same thing on purpose count as one; if a part tells
// them apart, use [Path] with keyfuncs.EventFrom instead.
//
// The error is a *lock.NoKeyError for what is not JSON, and for what has a new
// digest in each delivery: an event of AWS, an array of them, such as the batch
// of a pipe, and the pointer of a library for large messages.
func Payload(_ context.Context, payload json.RawMessage) (lock.Key, error) {
	text, err := canonical.JSON(payload)
	if err != nil {
		return lock.Key{}, notJSON(err)
	}
	if reason := renewed(text); reason != "" {
		return lock.Key{}, &lock.NoKeyError{Field: "payload", Reason: reason}
	}
	sum := sha256.Sum256(text)
	digest := base64.RawURLEncoding.EncodeToString(sum[:])
	return lock.Key{Name: "payload/" + digest, Event: digest}, nil
}

// renewed returns why the digest of a JSON text would be another one each time
// it is delivered or sent, or "".
func renewed(text []byte) string {
	switch kind := eventkind.Of(text); {
	case eventkind.IsPointer(text):
		return eventkind.PointerRefusal
	case eventkind.IsPointerObject(text):
		return eventkind.PointerRefusal + "; if your program means this object itself, use jmespath.Path"
	case kind == eventkind.SNSMessage:
		return "is an SNS message, which has a new id each time it is published: put SNSBody around the key function, SNSBody(jmespath.Payload), or turn on raw message delivery"
	case kind == eventkind.EventBridge:
		return "is an EventBridge event, which has a new id each time it is put: its key function is EventBridgeEvent, or EventBridgeDetail(jmespath.Payload) for a digest of the detail"
	case kind != nil:
		return kind.Refusal(nil)
	case eventkind.Of(first(text)) != nil:
		return eventkind.ArrayRefusal
	}
	return ""
}

// first returns the first element of a JSON array, or nil. It decodes no other,
// of which there may be thousands.
func first(text []byte) (element json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(text))
	if begin, err := d.Token(); err == nil && begin == json.Delim('[') {
		_ = d.Decode(&element) // stays nil if the array is empty
	}
	return element
}

func notJSON(err error) error {
	return &lock.NoKeyError{Field: "payload", Reason: "is not JSON", Err: err}
}
