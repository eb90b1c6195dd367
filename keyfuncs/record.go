package keyfuncs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/lock"
)

// named is a name of parts that may hold anything: no two lists of parts make the
// same one.
func named(kind string, parts ...string) string {
	var b strings.Builder
	b.WriteString(kind)
	for _, p := range parts {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(p))
	}
	return b.String()
}

// once is the key of something that is handled once and contends with nothing else.
func once(kind, id string, scope ...string) lock.Key {
	return lock.Key{Name: named(kind, append(scope, id)...), Event: id}
}

// digest stands for a text that is too long, or too private, to be shown.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// ordinal writes a decimal number of any length so that bytes compare as numbers do.
func ordinal(field, number string) (string, error) {
	digits := strings.TrimLeft(number, "0")
	if number == "" {
		return "", missing(field)
	}
	if len(digits) > 250 || strings.Trim(number, "0123456789") != "" {
		return "", &lock.KeyError{Field: field, Reason: "is not a decimal number of at most 250 digits"}
	}
	return fmt.Sprintf("%03d%s", len(digits), digits), nil
}

// only is the key of an event that holds exactly one record. where is the field of
// the records; instead says what to use for more of them.
func only[R any](ctx context.Context, where string, records []R, key Func[R], instead string) (lock.Key, error) {
	switch len(records) {
	case 0:
		return lock.Key{}, &lock.KeyError{Field: where, Reason: "is empty or missing: this is an event of another source"}
	case 1:
		k, err := key(ctx, records[0])
		return k, within(where+"[0]", err)
	}
	if err := sourceOf(records[0]); err != nil {
		return lock.Key{}, within(where+"[0]", err)
	}
	return lock.Key{}, &lock.KeyError{Field: where, Reason: fmt.Sprintf("holds %d records, and one lock cannot stand for them all: %s", len(records), instead)}
}

func missing(field string) error {
	return &lock.KeyError{Field: field, Reason: "is missing"}
}

// required is an error if one of the parts is missing.
func required(parts ...part) error {
	for _, p := range parts {
		if p.value == "" {
			return missing(p.field)
		}
	}
	return nil
}

// within says where the record is of which a key function spoke. It copies the
// error: a key function may return the same one for all events. What the key
// function wrapped around it stays in the chain.
func within(where string, err error) error {
	var e *lock.KeyError
	if !errors.As(err, &e) || e == nil {
		return err
	}
	located := *e
	located.Field = where + "." + e.Field
	if err != error(e) {
		located.Err = err
	}
	return &located
}

// envelope is the key of what a message of carrier has as JSON text in field. What
// has no identity of its own gets that of the message.
func envelope[E any](ctx context.Context, carrier eventkind.Kind, field, text, id string, inner Func[E]) (lock.Key, error) {
	event, err := decode[E](carrier, field, text)
	if err != nil {
		return lock.Key{}, err
	}
	k, err := inner(ctx, event)
	k.Event = cmp.Or(k.Event, id)
	return k, within(field, err)
}
