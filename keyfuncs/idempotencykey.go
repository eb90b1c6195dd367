package keyfuncs

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// IdempotencyKey handles each Idempotency-Key of an HTTP API once. Event is the
// value of that header, which the client sends again with its retries. Name is
// the API, the stage, the [Caller] and that value. Payload is a fingerprint of
// the request and of the caller's credentials: another request with the same
// key, or a stranger's, gets a [*lock.PayloadMismatchError], status 422. See
// docs/GUIDE.md#http. No Order.
//
// E is events.APIGatewayProxyRequest, APIGatewayV2HTTPRequest,
// APIGatewayWebsocketProxyRequest, ALBTargetGroupRequest or
// LambdaFunctionURLRequest, or is defined as, points to or embeds one. Events
// of any other type are refused.
//
// The error is a [*lock.NoKeyError]. Client is set in it if the header is
// missing or empty, has several values, more than 255 bytes or control
// characters, and Missing if it is absent; see [Optional]. Events of payload
// format 2.0, as of an HTTP API, join several values with a comma: there, a,b
// is one key.
func IdempotencyKey[E any](ctx context.Context, e E) (lock.Key, error) {
	return headerKey("Idempotency-Key", e, func(r request) (lock.Key, error) { return r.callerKey(ctx, anyCookie) })
}

// HeaderKey is [IdempotencyKey] for another header, or for a caller that only
// your own code knows: Name and Payload of caller take the place of [Caller].
// Let it name only whom code around the wrapped handler has authenticated, or
// be [Anonymous]: anybody can write a name into a token that is not checked.
// An empty Name is an error. HeaderKey panics if header cannot be the name of
// one, if caller is nil, and if E has no HTTP request.
func HeaderKey[E any](header string, caller Func[E]) Func[E] {
	notNil("HeaderKey", caller)
	if header == "" || strings.ContainsFunc(header, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == ':' }) {
		panic(fmt.Sprintf("lambdalock: keyfuncs.HeaderKey: %q is not the name of a header: write Idempotency-Key for example", header))
	}
	mustHoldRequest[E]("HeaderKey")
	return func(ctx context.Context, e E) (lock.Key, error) {
		return headerKey(header, e, func(request) (lock.Key, error) {
			invocation.Identified(ctx, true) // Caller and Anonymous may say otherwise
			k, err := caller(ctx, e)
			if err == nil && k.Name == "" {
				err = &lock.NoKeyError{Field: "caller", Reason: "is not named: let the function given to HeaderKey name one, or use keyfuncs.Anonymous"}
			}
			return k, err
		})
	}
}

func headerKey(header string, event any, caller func(request) (lock.Key, error)) (lock.Key, error) {
	r, err := requestOf(event)
	if err != nil {
		return lock.Key{}, err
	}
	return r.key(header, caller)
}

// key returns the key of a request.
func (r request) key(header string, caller func(request) (lock.Key, error)) (lock.Key, error) {
	if r.keyErr != nil {
		return lock.Key{}, r.keyErr
	}
	if err := r.whole(); err != nil {
		return lock.Key{}, err
	}
	key, err := headerValue(header, values(header, r.headers, r.multi))
	if err != nil {
		return lock.Key{}, err
	}
	by, err := caller(r)
	if err != nil {
		return lock.Key{}, err
	}
	text, err := r.body.decoded()
	if err != nil {
		return lock.Key{}, err
	}
	k := keyparts.Once("http", key, r.api.value, r.stage, by.Name)
	k.Payload = keyparts.Name("request", r.method.value, r.domain, r.path.value, r.query, r.contentDigest(text), by.Payload)
	return k, nil
}

// whole returns what is missing of a request that a gateway sends.
func (r request) whole() error {
	for _, p := range []field{r.api, r.method, r.path} {
		if p.value == "" {
			return &lock.NoKeyError{Field: p.name, Reason: fmt.Sprintf("is missing: %s; a request that a test builds needs %s, %s and %s", keyparts.AnotherSource, r.api.name, r.method.name, r.path.name)}
		}
	}
	return nil
}

// HTTPTarget names what an HTTP request asks for: its method, domain, path and
// query. [IdempotencyKey] compares it, beside body and caller. A Payload of
// your own takes the place of all three, so name them in it:
// PayloadFrom(IdempotencyKey, Join(HTTPTarget, byContent, Caller)). For a
// WebSocket API, event type and route take the place of method and path. No
// Event, no Order.
//
// The error is a [*lock.NoKeyError] if the event is not that of a gateway.
func HTTPTarget[E any](_ context.Context, e E) (lock.Key, error) {
	r, err := requestOf(e)
	if err == nil {
		err = r.whole()
	}
	if err != nil {
		return lock.Key{}, err
	}
	return lock.Key{Name: keyparts.Name("target", r.method.value, r.domain, r.path.value, r.query)}, nil
}

// headerValue returns the only value that a header has.
func headerValue(name string, values []string) (string, error) {
	const send = "send a value that is new for every request and the same in its retries"
	reason := ""
	switch {
	case len(values) == 0:
		reason = "is missing: " + send
	case len(values) == 1 && values[0] == "":
		reason = "is empty: " + send
	case len(values) > 1:
		reason = "has several different values: send one"
	case len(values[0]) > 255:
		reason = "is longer than 255 bytes"
	// Bytes that are not UTF-8 became a RuneError in the JSON of the event, so
	// different values may look the same.
	case strings.ContainsFunc(values[0], func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }):
		reason = "contains control characters, or is not UTF-8"
	default:
		return values[0], nil
	}
	return "", &lock.NoKeyError{Field: "headers[" + name + "]", Reason: reason, Client: true, Missing: len(values) == 0}
}
