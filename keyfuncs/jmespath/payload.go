package jmespath

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"github.com/lambdalock/lambdalock/internal/event/canonical"
	"github.com/lambdalock/lambdalock/lock"
)

// Payload handles each payload once, for sources that give their events no
// identity. Name and Event are a digest of the JSON: the order of members,
// white space and the spelling of numbers and strings do not count, everything
// else does. Two events that say the same thing on purpose count as one. If a
// part of the payload tells them apart, use [Path] with keyfuncs.EventFrom
// instead.
func Payload(_ context.Context, payload json.RawMessage) (lock.Key, error) {
	text, err := canonical.JSON(payload)
	if err != nil {
		return lock.Key{}, notJSON(err)
	}
	sum := sha256.Sum256(text)
	digest := base64.RawURLEncoding.EncodeToString(sum[:])
	return lock.Key{Name: "payload/" + digest, Event: digest}, nil
}

func notJSON(err error) error {
	return &lock.KeyError{Field: "payload", Reason: "is not JSON", Err: err}
}
