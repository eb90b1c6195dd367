package jmespath

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"github.com/lambdalock/lambdalock/internal/event/canonical"
	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/lock"
)

// Payload handles each payload once, for sources that give their events no
// identity. Name and Event are a digest of the JSON: the order of members,
// white space and the spelling of numbers and strings do not count, everything
// else does. Two events that say the same thing on purpose count as one. If a
// part of the payload tells them apart, use [Path] with keyfuncs.EventFrom
// instead.
//
// The error is a *lock.NoKeyError for what is not JSON, and for the pointer
// that an extended client library of SQS or SNS sends in place of a large body:
// it has a new name of an object for each send, and says nothing of the body.
func Payload(_ context.Context, payload json.RawMessage) (lock.Key, error) {
	text, err := canonical.JSON(payload)
	if err != nil {
		return lock.Key{}, notJSON(err)
	}
	if eventkind.IsPointer(text) {
		return lock.Key{}, &lock.NoKeyError{Field: "payload", Reason: eventkind.PointerRefusal}
	}
	sum := sha256.Sum256(text)
	digest := base64.RawURLEncoding.EncodeToString(sum[:])
	return lock.Key{Name: "payload/" + digest, Event: digest}, nil
}

func notJSON(err error) error {
	return &lock.NoKeyError{Field: "payload", Reason: "is not JSON", Err: err}
}
