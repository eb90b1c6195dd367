package keyfuncs

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/url"

	"github.com/lambdalock/lambdalock/lock"
)

// Prefix puts a part before the name of another key function, for example to
// keep two decorators of one function apart. No two prefixes can make the same
// name of different ones.
func Prefix[E any](prefix string, key Func[E]) Func[E] {
	head := url.PathEscape(prefix) + "/"
	return func(ctx context.Context, event E) (lock.Key, error) {
		k, err := key(ctx, event)
		if k.Name != "" { // an empty name must stay an error
			k.Name = head + k.Name
		}
		return k, err
	}
}

// Hash replaces Name and Event by their SHA-256, so that identifiers do not stand
// in the table as they are. Identifiers that can be guessed can still be found
// by hashing guesses. Order is left as it is, because it must stay comparable.
func Hash[E any](key Func[E]) Func[E] {
	return func(ctx context.Context, event E) (lock.Key, error) {
		k, err := key(ctx, event)
		k.Name, k.Event = digest(k.Name), digest(k.Event)
		return k, err
	}
}

func digest(s string) string {
	if s == "" { // empty means none, also afterwards
		return ""
	}
	sum := sha256.Sum256([]byte(s))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
