package keyfuncs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lambdalock/lambdalock/internal/event/canonical"
	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// Static locks one name for every event, for work that must not run twice at
// once, and for handlers that take no event. It is a plain mutex: every event
// is handled, also one that is delivered twice, unless an envelope around it,
// such as that of EachSQSBody, has an id. For a scheduled job use
// [EventBridgeSchedule]. Where a Func[E] is needed, as in [All], write
//
//	ByField(func(E) string { return "search-index" })
//
// Static panics if name is empty.
func Static(name string) Func[any] {
	if name == "" {
		panic(`lambdalock: keyfuncs.Static(""): give it a name; if that comes from a setting, such as an environment variable, set it`)
	}
	return func(context.Context, any) (lock.Key, error) { return lock.Key{Name: name}, nil }
}

// ByField locks what find returns from the event: that is the Name. On its own
// it makes a plain mutex; [Once], [EventFrom] or an envelope adds an Event, and
// [Prefix] tells the values of two wrappers apart. The error is a
// [*lock.NoKeyError] if the Name contains U+FFFD, as which Go decodes broken
// characters. An empty Name is refused later, by the wrapper or the Locker.
// ByField panics if find is nil.
func ByField[E any](find func(E) string) Func[E] {
	if find == nil {
		panic("lambdalock: keyfuncs.ByField(nil): give it the function that finds the name in your event")
	}
	return func(_ context.Context, e E) (lock.Key, error) {
		name := find(e)
		if strings.ContainsRune(name, utf8.RuneError) {
			return lock.Key{}, &lock.NoKeyError{Reason: "is not UTF-8 or contains U+FFFD where the key is taken from", Err: errReplaced}
		}
		return lock.Key{Name: name}, nil
	}
}

// errReplaced is why a Name with U+FFFD is refused. Like what to change in the
// code, it is not part of a Reason, which a client may see.
var errReplaced = errors.New("encoding/json decodes broken characters as U+FFFD, so keyfuncs.ByField would give different events the same Name")

// Prefix puts a part in front of the name of another key function, for example
// to keep two wrappers of one function apart.
func Prefix[E any](key Func[E], prefix string) Func[E] {
	notNil("Prefix", key)
	head := url.PathEscape(prefix) + "/"
	return func(ctx context.Context, event E) (lock.Key, error) {
		k, err := key(ctx, event)
		if k.Name != "" { // an empty name must stay an error
			k.Name = head + k.Name
		}
		return k, err
	}
}

// Once handles each name once: Event is the Name too. The Order is dropped.
func Once[E any](key Func[E]) Func[E] {
	notNil("Once", key)
	return func(ctx context.Context, event E) (lock.Key, error) {
		k, err := key(ctx, event)
		return lock.Key{Name: k.Name, Event: k.Name, Payload: k.Payload}, err
	}
}

// Optional lets events without a key run unlocked, as often as they are
// delivered; the outcome is middleware.OutcomeNoLock. It returns [ErrNoLock] if
// key finds no Name, or returns a [*lock.NoKeyError] with Client and Missing
// set, such as for a request without the header:
//
//	Optional(IdempotencyKey[events.APIGatewayV2HTTPRequest])
//
// Put Optional around the whole key: inside [Join], [EventFrom] and their like,
// an event that lacks this one part runs without any lock.
func Optional[E any](key Func[E]) Func[E] {
	notNil("Optional", key)
	return func(ctx context.Context, event E) (lock.Key, error) {
		k, err := key(ctx, event)
		var e *lock.NoKeyError
		absent := errors.As(err, &e) && e != nil && e.Client && e.Missing
		if absent || err == nil && k.Name == "" {
			return lock.Key{}, ErrNoLock
		}
		return k, err
	}
}

// EventFrom recognises duplicates by another key function, by its Name and its
// Event if it has one. Name and Order stay those of key, and so does the
// Payload unless key has none. The error is a [*lock.NoKeyError] if from finds
// no Name.
func EventFrom[E any](key, from Func[E]) Func[E] {
	notNil("EventFrom", key, from)
	return func(ctx context.Context, event E) (lock.Key, error) {
		k, err := key(ctx, event)
		if err != nil {
			return k, err
		}
		other, err := from(ctx, event)
		k.Event, k.Payload = identity(other), cmp.Or(k.Payload, other.Payload)
		if err == nil && other.Name == "" { // an envelope has set an Event, which tells its deliveries apart
			err = nothingFrom("the second key function of EventFrom", "Event")
		}
		return k, err
	}
}

// identity returns what the events of all names can be told apart by.
func identity(k lock.Key) string {
	if k.Event == "" || k.Event == k.Name {
		return k.Name
	}
	return keyparts.Name("event", k.Name, k.Event)
}

// nothingFrom returns the error for an event without what a constructor takes
// from one of its key functions. It names no field, because only that function
// knows which one it reads.
func nothingFrom(source, part string) error {
	return &lock.NoKeyError{
		Reason:  "lacks a field that its key is taken from",
		Err:     fmt.Errorf("%s returned an empty Name, so there is no %s: let the sender fill in the field that it reads, or correct its json tag; if the event comes from another source, `lambdalock explain` names the key function", source, part),
		Missing: true,
	}
}

// PayloadFrom refuses an event that comes again with another payload, with a
// [*lock.PayloadMismatchError]. The payload is what from returns: its Payload
// or, if it has none, its Name. It takes the place of the Payload of key, and
// over HTTP of the caller that package middleware compares: see [HTTPTarget]
// and [Caller]. Without an Event, payloads are not compared; nor with an Order
// once the event is not remembered any more: then it is stale.
func PayloadFrom[E any](key, from Func[E]) Func[E] {
	notNil("PayloadFrom", key, from)
	return func(ctx context.Context, event E) (lock.Key, error) {
		k, err := key(ctx, event)
		if err != nil {
			return k, err
		}
		other, err := from(ctx, event)
		k.Payload = cmp.Or(other.Payload, other.Name)
		if err == nil && k.Payload == "" {
			err = nothingFrom("the second key function of PayloadFrom", "Payload")
		}
		return k, err
	}
}

// OrderFrom skips stale events. It orders them by the Order of from or, if it
// has none, by its Name, which must rise with every event: natural numbers are
// compared as numbers, times of RFC 3339 as times, other text byte by byte. A
// JSON string, as package jmespath finds it, counts without its quotes. Other
// numbers, JSON arrays and objects are refused.
//
// An Order only compares with those of the same Name of from, such as one
// shard, so the Name is then made of both, as in [Join]. from must have an
// Order for every event or for none, so it cannot be [S3LatestRecord]. If from
// names each event by itself, as [SQSMessage] does, the key stays unchanged.
// Other names of this package's key functions do not rise, nor does a [Hash],
// so without an Order the error is a [*lock.NoKeyError].
func OrderFrom[E any](key, from Func[E]) Func[E] {
	notNil("OrderFrom", key, from)
	return func(ctx context.Context, event E) (lock.Key, error) {
		k, err := key(ctx, event)
		if err != nil {
			return k, err
		}
		other, err := from(ctx, event)
		if err != nil || keyparts.IsOnce(other) {
			return k, err
		}
		if other.Order != "" && k.Name != "" { // an empty name must stay an error
			k.Name = keyparts.Name("join", k.Name, other.Name)
		}
		k.Order, err = orderOf(other)
		return k, err
	}
}

var errUnordered = errors.New("the second key function of keyfuncs.OrderFrom has no Order: give it one that has, or that takes a number or a time that rises from the event, and put no Hash or HMAC around it")

func orderOf(k lock.Key) (string, error) {
	text := unquoted(k.Name)
	t, noTime := time.Parse(time.RFC3339Nano, text)
	switch {
	case k.Order != "":
		return k.Order, nil
	case text == "":
		return "", nothingFrom("the second key function of OrderFrom", "Order")
	case strings.Trim(text, "0123456789") == "":
		return ordinal("Order", text)
	case noTime == nil:
		return t.UTC().Format("2006-01-02T15:04:05.000000000Z"), nil
	case strings.ContainsAny(text[:1], "-0123456789") && json.Valid([]byte(text)):
		return "", &lock.NoKeyError{Field: "Order", Reason: "is a number but not a natural one, and its bytes would compare wrongly"}
	case strings.ContainsAny(text[:1], "[{") && json.Valid([]byte(text)):
		return "", &lock.NoKeyError{Field: "Order", Reason: "is a JSON array or object, and its bytes would compare wrongly"}
	case !keyparts.Rises(k.Name): // quotes included: what is in them only looks like such a name
		return "", &lock.NoKeyError{Field: "Order", Reason: "would be a name that does not rise with every event", Err: errUnordered}
	}
	return text, nil
}

// unquoted returns the text of a JSON string, and any other text unchanged. The
// quotes would hide a number or a time. Half of a surrogate pair becomes bytes
// that are not UTF-8, which the Locker refuses.
func unquoted(text string) string {
	if !strings.HasPrefix(text, `"`) {
		return text
	}
	v, err := canonical.Parse([]byte(text))
	if s, ok := v.(string); ok && err == nil {
		return s
	}
	return text
}

// ordinal writes a decimal number of any length so that its bytes compare as
// numbers do.
func ordinal(field, number string) (string, error) {
	digits := strings.TrimLeft(number, "0")
	if number == "" {
		return "", keyparts.Missing(field)
	}
	if len(digits) > 250 || strings.Trim(number, "0123456789") != "" {
		return "", &lock.NoKeyError{Field: field, Reason: "is not a decimal number of at most 250 digits"}
	}
	return fmt.Sprintf("%03d%s", len(digits), digits), nil
}

// Join locks what several key functions name together. Its Event joins their
// Events, if any has one, and its Payload their Payloads, in which the Name of
// a part stands for a Payload that it lacks. Its Order is that of first.
func Join[E any](first Func[E], more ...Func[E]) Func[E] {
	keys := append([]Func[E]{first}, more...)
	notNil("Join", keys...)
	return func(ctx context.Context, event E) (lock.Key, error) {
		var names, events, payloads []string
		var joined lock.Key
		compared := false
		for i, key := range keys {
			k, err := key(ctx, event)
			if err == nil && k.Name == "" {
				err = nothingFrom(fmt.Sprintf("part %d of Join", i+1), "Name")
			}
			if err != nil {
				return lock.Key{}, err
			}
			names, events, payloads = append(names, k.Name), append(events, k.Event), append(payloads, cmp.Or(k.Payload, k.Name))
			compared = compared || k.Payload != ""
			if i == 0 {
				joined.Order = k.Order
			}
		}
		joined.Name = keyparts.Name("join", names...)
		if slices.ContainsFunc(events, func(e string) bool { return e != "" }) {
			joined.Event = keyparts.Name("join", events...)
		}
		if compared {
			joined.Payload = keyparts.Name("join", payloads...)
		}
		return joined, nil
	}
}
