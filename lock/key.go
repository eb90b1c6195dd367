package lock

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"unicode/utf8"

	"github.com/lambdalock/lambdalock/internal/event/stored"
)

// Key names the resource to lock and the event that asks for it. The two
// differ: two uploads of one S3 object contend for the same Name, yet each must
// be handled; two deliveries of one upload have the same Event, and the second
// must do nothing.
type Key struct {
	// Name is the lock key: the resource, which has at most one holder at a time.
	// Any bytes; required.
	Name string
	// Event is the idempotency key, or deduplication id: two deliveries with the
	// same Name and Event are duplicates, and once one is completed the other is
	// refused. Any bytes. Empty means none; without an Order either, the lock is a
	// plain mutex.
	Event string
	// Order is the sequence number of the event among the events of Name, compared
	// bytewise. An event whose Order is not above the highest completed one is
	// stale and refused: setting Order is a decision to drop stale events. Empty
	// means unordered. At most 256 bytes of valid UTF-8.
	Order string
	// Payload is what Event stands for, or a fingerprint of it. Any bytes; only a
	// digest is stored. Two keys with the same Name and Event but different
	// Payloads are a mistake of the caller, for example an idempotency key that is
	// used for another request: the second gets a [*PayloadMismatchError]. Empty,
	// and without an Event, payloads are not compared; but if only one of the two
	// keys has one, the second gets no result of the first.
	Payload string
}

// Digest returns a short fingerprint of Name for logs and error messages. Names
// come from strangers and may hold personal data, so they are not logged.
func (k Key) Digest() string {
	sum := sha256.Sum256([]byte(k.Name))
	return hex.EncodeToString(sum[:6])
}

const (
	maxNamespace = 256 // three times that when every byte is escaped
	maxOrder     = 256
)

func (k Key) check() error {
	switch {
	case k.Name == "":
		return &NoKeyError{Field: "Name", Reason: "is empty: if it comes from the event, let the sender fill in the field that the key function reads, or correct its json tag; otherwise set what it is made from, such as an environment variable; if the event comes from another source, `lambdalock explain` names the key function"}
	case len(k.Order) > maxOrder || !utf8.ValidString(k.Order):
		return &NoKeyError{Field: "Order", Reason: "must be valid UTF-8 of at most 256 bytes: stores compare it bytewise, so it cannot be hashed"}
	}
	return nil
}

func namespacePrefix(namespace string) (string, error) {
	if len(namespace) > maxNamespace {
		return "", &ConfigError{Reason: fmt.Sprintf("the namespace is %d bytes long; use at most %d", len(namespace), maxNamespace)}
	}
	return stored.Prefix(namespace), nil
}
