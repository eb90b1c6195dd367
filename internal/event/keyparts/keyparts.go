// Package keyparts has what key functions make their keys of.
package keyparts

import (
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"

	"github.com/lambdalock/lambdalock/lock"
)

// Name makes a name out of parts that may contain anything. Different lists of
// parts make different names.
func Name(kind string, parts ...string) string {
	var b strings.Builder
	b.WriteString(kind)
	for _, p := range parts {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(p))
	}
	return b.String()
}

// Once returns the key of something that is handled once and never waits for
// anything else.
func Once(kind, id string, scope ...string) lock.Key {
	return lock.Key{Name: Name(kind, append(scope, id)...), Event: id}
}

// IsOnce reports whether a key is one like those of Once: the name has the id
// of the event, so no two events share it, and comparing names says nothing.
func IsOnce(k lock.Key) bool {
	if k.Event == "" || k.Order != "" {
		return false
	}
	id, _, _ := strings.Cut(k.Event, "/") // what follows tells parts of one event apart
	return strings.HasSuffix(k.Name, "/"+k.Event) || strings.HasSuffix(k.Name, "/"+url.PathEscape(k.Event)) ||
		hasKind(k.Name) && strings.Contains(k.Name+"/", "/"+url.PathEscape(id)+"/")
}

// kinds are those of the names of this module's key functions, and of several
// names together, in which numbers do not compare as numbers.
var kinds = strings.Fields(`
	activemq alarm caller cloudformation cloudwatchlogs codecommit codepipeline cognito config custombus custombusgroup
	documentdb dynamodb eventbridge http invocation iot join kafka kinesis rabbitmq s3 s3batch schedule secret ses sns sqs
	stepfunctions target`)

func hasKind(name string) bool {
	kind, _, more := strings.Cut(name, "/")
	return more && slices.Contains(kinds, kind)
}

// Rises reports whether names like this one may rise from event to event: not
// if they are of a thing that has many events, or end in a hash.
func Rises(name string) bool {
	last := name[strings.LastIndexByte(name, '/')+1:]
	sum, err := base64.RawURLEncoding.Strict().DecodeString(last)
	return !hasKind(name) && (err != nil || len(sum) != sha256.Size)
}

// OfTenant returns a name, or an event, of a tenant's own.
func OfTenant(tenant, text string) string { return Name("tenant", tenant) + "/" + text }

// Digest returns a hash in place of a text that is too long, or too private, to
// be shown.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Required returns an error if a field that every event of the source has is
// missing. Each name is followed by the value.
func Required(namesAndValues ...string) error {
	for pair := range slices.Chunk(namesAndValues, 2) {
		if pair[1] == "" {
			return Missing(pair[0])
		}
	}
	return nil
}

// AnotherSource is for an event that does not say which source it comes from.
const AnotherSource = "this is an event of another source, whose key function `lambdalock explain` names"

// Missing returns the error of an event without a field that all events of its
// source have.
func Missing(field string) error {
	return &lock.NoKeyError{Field: field, Reason: "is missing: " + AnotherSource, Missing: true}
}
