package keyfuncs

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

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

// Once handles each name once: the name becomes the Event as well. There is no
// Order any more.
func Once[E any](key Func[E]) Func[E] {
	return func(ctx context.Context, event E) (lock.Key, error) {
		k, err := key(ctx, event)
		return lock.Key{Name: k.Name, Event: k.Name}, err
	}
}

// EventFrom tells duplicates by another key function: by its Event or, where it has
// none, by its Name. Name and Order stay those of key.
func EventFrom[E any](key, from Func[E]) Func[E] {
	return func(ctx context.Context, event E) (lock.Key, error) {
		k, err := key(ctx, event)
		if err != nil {
			return k, err
		}
		other, err := from(ctx, event)
		k.Event = cmp.Or(other.Event, other.Name)
		if err == nil && k.Event == "" {
			err = missing("Event")
		}
		return k, err
	}
}

// OrderFrom skips what was overtaken, by the order of another key function: by its
// Order or, where it has none, by its Name. Natural numbers are compared as numbers,
// other text byte by byte; a Name that is a number of another kind is refused,
// because its bytes would compare wrongly. Name and Event stay those of key. Only an
// Order that rises with every event of a name is one: see [lock.Key].
func OrderFrom[E any](key, from Func[E]) Func[E] {
	return func(ctx context.Context, event E) (lock.Key, error) {
		k, err := key(ctx, event)
		if err != nil {
			return k, err
		}
		other, err := from(ctx, event)
		if err != nil {
			return k, err
		}
		k.Order, err = orderOf(other)
		return k, err
	}
}

func orderOf(k lock.Key) (string, error) {
	switch {
	case k.Order != "":
		return k.Order, nil
	case k.Name == "":
		return "", missing("Order")
	case strings.Trim(k.Name, "0123456789") == "":
		return ordinal("Order", k.Name)
	case json.Valid([]byte(k.Name)) && strings.ContainsAny(k.Name[:1], "-0123456789"):
		return "", &lock.KeyError{Field: "Order", Reason: "is a number, but not a natural one: bytes would compare it wrongly"}
	}
	return k.Name, nil
}

// Join makes one name of several, without ambiguity: Join(a, b) locks what a and b
// name together. Its Event joins theirs, if any of them has one; its Order is that
// of the first.
func Join[E any](first Func[E], more ...Func[E]) Func[E] {
	keys := append([]Func[E]{first}, more...)
	return func(ctx context.Context, event E) (lock.Key, error) {
		var names, events []string
		var joined lock.Key
		for i, key := range keys {
			k, err := key(ctx, event)
			if err == nil && k.Name == "" {
				err = &lock.KeyError{Field: "Name", Reason: fmt.Sprintf("is empty in part %d of the joined key", i+1)}
			}
			if err != nil {
				return lock.Key{}, err
			}
			names, events = append(names, k.Name), append(events, k.Event)
			if i == 0 {
				joined.Order = k.Order
			}
		}
		joined.Name = named("join", names...)
		if slices.ContainsFunc(events, func(e string) bool { return e != "" }) {
			joined.Event = named("join", events...)
		}
		return joined, nil
	}
}

// Version refuses events of another shape than the key function was written for, with
// a [*lock.KeyError]: of finds the version in an event, and only the given ones pass.
// A version that ends with a dot stands for all that begin with it: "2." for 2.1, 2.2
// and so on.
func Version[E any](key Func[E], of func(E) string, versions ...string) Func[E] {
	if len(versions) == 0 {
		panic("lambdalock: keyfuncs.Version: no version is given, so none could pass")
	}
	return func(ctx context.Context, event E) (lock.Key, error) {
		version := of(event)
		for _, v := range versions {
			if version == v || strings.HasSuffix(v, ".") && strings.HasPrefix(version, v) {
				return key(ctx, event)
			}
		}
		return lock.Key{}, &lock.KeyError{Field: "version", Reason: fmt.Sprintf("is %.20q, and the key function is for %q", version, versions)}
	}
}

// Hash replaces Name and Event by their SHA-256, so that identifiers do not stand
// in the table as they are. Identifiers that can be guessed can still be found
// by hashing guesses: for those see [HMAC]. Order is left as it is, because it must
// stay comparable.
func Hash[E any](key Func[E]) Func[E] {
	return hashed(key, digest)
}

// HMAC is [Hash] with a secret, for identifiers that can be guessed, such as names
// and e-mail addresses. Whoever has the table but not the secret cannot test
// guesses. With another secret the same events have other keys: what was completed
// before is forgotten. HMAC panics if the secret has fewer than 16 bytes.
func HMAC[E any](secret []byte, key Func[E]) Func[E] {
	if len(secret) < 16 {
		panic(fmt.Sprintf("lambdalock: keyfuncs.HMAC: a secret of %d bytes can be guessed; use at least 16 random ones", len(secret)))
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
			if *part != "" { // empty means none, also afterwards
				*part = sum(*part)
			}
		}
		return k, err
	}
}
