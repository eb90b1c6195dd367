package lock

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"
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
	// used for another request: the second gets a [*MismatchError]. Empty, and
	// without an Event, payloads are not compared.
	Payload string
}

// Digest returns a short fingerprint of Name for logs and error messages. Names
// come from strangers and may hold personal data, so they are not logged.
func (k Key) Digest() string {
	sum := sha256.Sum256([]byte(k.Name))
	return hex.EncodeToString(sum[:6])
}

const (
	// maxName is DynamoDB's limit for a partition key, the lowest of all stores.
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
	maxName      = 2048
	maxNamespace = 256 // three times that when every byte is escaped
	maxOrder     = 256
	// maxEvent keeps eight events inside one write unit of 1 KB. It is also the
	// length of a hashed event.
	maxEvent   = len(hashPrefix) + 43
	hashPrefix = "sha256:"
	slotPrefix = "slot:" // before the number of a slot; see slotName
	// payloadDigest is how many bytes of a hash are kept of a payload: enough to
	// notice a mistake, and few, because a row has little room.
	payloadDigest = 16
)

func (k Key) check() error {
	switch {
	case k.Name == "":
		return &KeyError{Field: "Name", Reason: "is empty: every event would share one lock; the key function must name the resource"}
	case len(k.Order) > maxOrder || !utf8.ValidString(k.Order):
		return &KeyError{Field: "Order", Reason: "must be valid UTF-8 of at most 256 bytes: stores compare it bytewise, so it cannot be hashed"}
	}
	return nil
}

// namespacePrefix makes pairs of namespace and name unambiguous: the first
// slash of a stored name always ends the namespace. The usual namespace, a
// function name, has nothing to escape and stays readable.
func namespacePrefix(namespace string) (string, error) {
	if len(namespace) > maxNamespace {
		return "", &ConfigError{Reason: fmt.Sprintf("the namespace is %d bytes long; use at most %d", len(namespace), maxNamespace)}
	}
	return url.PathEscape(namespace) + "/", nil
}

// storedName returns the name as stores see it: valid UTF-8, at most maxName
// bytes. A name that begins like a hash, or like a slot, is hashed too, so that
// nobody can choose a name that collides with the hash or a slot of another.
func storedName(prefix, name string) string {
	if len(prefix)+len(name) <= maxName && storable(name) && !strings.HasPrefix(name, slotPrefix) {
		return prefix + name
	}
	return prefix + hashed(name)
}

// storedEvent does the same for events, with the length that a row can
// remember.
func storedEvent(event string) string {
	if len(event) <= maxEvent && storable(event) {
		return event
	}
	return hashed(event)
}

// storedPayload returns a digest of the payload, or "" if there is none.
func storedPayload(payload string) string {
	if payload == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(payload))
	return base64.RawURLEncoding.EncodeToString(sum[:payloadDigest])
}

// storable reports whether stores can keep s unchanged. Invalid UTF-8 does not
// survive JSON, and two such names would become the same one.
func storable(s string) bool {
	return utf8.ValidString(s) && !strings.HasPrefix(s, hashPrefix)
}

func hashed(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hashPrefix + base64.RawURLEncoding.EncodeToString(sum[:])
}
