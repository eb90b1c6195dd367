package keyfuncs

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// Hash replaces Name and Event with their SHA-256, to keep identifiers out of
// the table. For those that can be guessed use [HMAC]. Order is left unchanged,
// because it must stay comparable.
func Hash[E any](key Func[E]) Func[E] {
	notNil("Hash", key)
	return hashed(key, keyparts.Digest)
}

// HMAC is [Hash] with a secret, for identifiers that can be guessed, such as
// email addresses. With a new secret, what was completed before is forgotten.
// HMAC panics if the secret has fewer than 16 bytes.
func HMAC[E any](key Func[E], secret []byte) Func[E] {
	notNil("HMAC", key)
	if len(secret) < 16 {
		panic(fmt.Sprintf("lambdalock: keyfuncs.HMAC: a secret of %d bytes can be guessed; use at least 16 random bytes", len(secret)))
	}
	secret = slices.Clone(secret)
	return hashed(key, func(text string) string {
		h := hmac.New(sha256.New, secret)
		h.Write([]byte(text))
		return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
	})
}

func hashed[E any](key Func[E], sum func(string) string) Func[E] {
	return func(ctx context.Context, event E) (lock.Key, error) {
		k, err := key(ctx, event)
		for _, part := range []*string{&k.Name, &k.Event} {
			if *part != "" { // empty means none, and must stay empty
				*part = sum(*part)
			}
		}
		return k, err
	}
}
