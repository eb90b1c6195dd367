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

// IsOnce reports whether a key is one like those of Once: the name ends in the
// event, so no two events share it, and comparing names says nothing.
func IsOnce(k lock.Key) bool {
	return k.Event != "" && k.Order == "" && (strings.HasSuffix(k.Name, "/"+k.Event) || strings.HasSuffix(k.Name, "/"+url.PathEscape(k.Event)))
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
