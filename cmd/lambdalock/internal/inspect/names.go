// Package inspect shows the rows of a store to people, and to their scripts.
package inspect

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lambdalock/lambdalock/internal/event/stored"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// hashPrefix begins a name that the row has only as a hash; see package stored.
const hashPrefix = "sha256:"

// parts are what a stored name is made of.
type parts struct {
	prefix string // of the namespace, with the slash
	slot   int    // of a limited lock; 1 is the row of the name itself
	name   string // as package stored leaves it: perhaps a hash
}

// split takes a stored name apart.
func split(row string) parts {
	p := parts{slot: 1}
	before, rest, found := strings.Cut(row, "/")
	if !found {
		return parts{slot: 1, name: row} // not a row of this library
	}
	p.prefix, p.name = before+"/", rest
	if numbered, ok := strings.CutPrefix(rest, stored.SlotPrefix); ok {
		number, name, _ := strings.Cut(numbered, ":")
		if n, err := strconv.Atoi(number); err == nil {
			p.slot, p.name = n, name
		}
	}
	return p
}

// namespace returns the namespace as the caller of the library knows it.
func (p parts) namespace() string {
	namespace, err := url.PathUnescape(strings.TrimSuffix(p.prefix, "/"))
	if err != nil {
		return p.prefix
	}
	return namespace
}

// hash returns the hash of a name that is stored as one.
func (p parts) hash() []byte {
	text, ok := strings.CutPrefix(p.name, hashPrefix)
	sum, err := base64.RawURLEncoding.DecodeString(text)
	if !ok || err != nil || len(sum) != sha256.Size {
		return nil
	}
	return sum
}

// digest returns what [lock.Key.Digest] says of the name: it is the beginning
// of the hash that stands for the name.
func (p parts) digest() string {
	if sum := p.hash(); sum != nil {
		return hex.EncodeToString(sum)[:12]
	}
	return lock.Key{Name: p.name}.Digest()
}

// slotName returns the stored name of another slot of the same name.
func (p parts) slotName(number int) string {
	prefix := p.prefix + stored.SlotPrefix + strconv.Itoa(number) + ":"
	if p.hash() != nil {
		return prefix + p.name
	}
	return stored.Name(prefix, p.name)
}

// candidates returns the stored names that a person may mean: the name as the
// key function gives it, in the namespace, and the whole stored name as list
// prints it. Without a namespace, the latter comes first. Those of a name that
// Safe has quoted come last.
func candidates(namespace, key string) []string {
	var names []string
	for _, key := range Meanings(key) {
		inNamespace := stored.Name(stored.Prefix(namespace), key)
		switch {
		case len(key) > 2048 || !utf8.ValidString(key):
			names = append(names, inNamespace)
		case namespace == "":
			names = append(names, key, inNamespace)
		default:
			names = append(names, inNamespace, key)
		}
	}
	return names
}

// Namesake returns the flags for the lock that list prints by the name, where
// the name itself is not taken for a stored one; keyFlag is that of the key. It
// returns "" if there is no such lock. A look that fails does not matter.
func Namesake(ctx context.Context, store driver.Inspector, name, keyFlag string) string {
	if !strings.Contains(name, "/") {
		return ""
	}
	row, err := store.Read(ctx, name)
	if err != nil || row.Unknown() {
		return ""
	}
	p := split(name)
	if p.hash() != nil {
		return "" // and the key is not known
	}
	flags := keyFlag + " " + Safe(p.name)
	if namespace := p.namespace(); namespace != "" {
		flags = "--namespace " + Safe(namespace) + " " + flags
	}
	return flags
}
