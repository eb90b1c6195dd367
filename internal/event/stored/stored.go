// Package stored turns names, events and payloads of any bytes into what the
// row of a lock holds.
package stored

import (
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strings"
	"unicode/utf8"
)

const (
	// maxName is DynamoDB's limit for a partition key, the lowest of all stores.
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
	maxName = 2048
	// maxEvent keeps eight events inside one write unit of 1 KB. It is also the
	// length of a hashed event.
	maxEvent   = len(hashPrefix) + 43
	hashPrefix = "sha256:"
	// SlotPrefix stands before the number of a slot, in the names of a limited
	// lock.
	SlotPrefix = "slot:"
	// payloadDigest is how many bytes of a hash are kept of a payload: enough to
	// notice a mistake, and few, because a row has little room.
	payloadDigest = 16
)

// Prefix returns what stands before the names of a namespace. It makes pairs of
// namespace and name unambiguous: the first slash of a stored name always ends
// the namespace. The usual namespace, a function name, has nothing to escape
// and stays readable.
func Prefix(namespace string) string { return url.PathEscape(namespace) + "/" }

// Name returns the name as stores see it: valid UTF-8, at most 2,048 bytes. A
// name that begins like a hash, or like a slot, is hashed too, so that nobody
// can choose a name that collides with the hash or a slot of another.
func Name(prefix, name string) string {
	if len(prefix)+len(name) <= maxName && storable(name) && !strings.HasPrefix(name, SlotPrefix) {
		return prefix + name
	}
	return prefix + hashed(name)
}

// Event does the same for events, with the length that a row can remember.
func Event(event string) string {
	if len(event) <= maxEvent && storable(event) {
		return event
	}
	return hashed(event)
}

// Payload returns a digest of the payload, or "" if there is none.
func Payload(payload string) string {
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
