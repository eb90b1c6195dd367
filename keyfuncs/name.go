package keyfuncs

import (
	"net/url"
	"strings"

	"github.com/lambdalock/lambdalock/lock"
)

// named makes a name out of parts that may contain anything. Different lists of
// parts make different names.
func named(kind string, parts ...string) string {
	var b strings.Builder
	b.WriteString(kind)
	for _, p := range parts {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(p))
	}
	return b.String()
}

// once returns the key of something that is handled once and never waits for
// anything else.
func once(kind, id string, scope ...string) lock.Key {
	return lock.Key{Name: named(kind, append(scope, id)...), Event: id}
}
