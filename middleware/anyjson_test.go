package middleware_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// byItem names an order by its number, which has more digits than a float64.
func byItem(_ context.Context, o order) (lock.Key, error) {
	digits := strconv.FormatInt(o.Item, 10)
	return lock.Key{Name: digits, Event: digits}, nil
}

// TestHandlerOfAnyJSON shows that the event of a handler that takes any JSON is
// decoded for the key alone, with the digits of its numbers where the runtime
// has kept them, and reaches the handler unchanged.
func TestHandlerOfAnyJSON(t *testing.T) {
	t.Parallel()
	const first, second, rounded = "9007199254740993", "9007199254740995", "9007199254740992"
	item := func(digits string) string { return `{"id":"1","item":` + digits + `}` }
	inBase64 := func(digits string) string {
		return `"` + base64.StdEncoding.EncodeToString([]byte(item(digits))) + `"`
	}
	var got any
	for name, c := range map[string]struct {
		wrap    func(opts []middleware.Option) any
		payload func(digits string) string
		options []lambda.Option
		want    string
	}{
		"json.RawMessage": {func(opts []middleware.Option) any {
			return middleware.WithLock(byItem, func(_ context.Context, e json.RawMessage) (any, error) { got = string(e); return nil, nil }, opts...)
		}, item, nil, first},
		"bytes": {func(opts []middleware.Option) any {
			return middleware.WithLock(byItem, func(_ context.Context, e []byte) (any, error) { got = string(e); return nil, nil }, opts...)
		}, inBase64, nil, first},
		"any": {func(opts []middleware.Option) any {
			return middleware.WithLock(byItem, func(_ context.Context, e any) (any, error) { got = e; return nil, nil }, opts...)
		}, item, nil, rounded}, // what the doc comment of WithLock warns of
		"object": {func(opts []middleware.Option) any {
			return middleware.WithLock(byItem, func(_ context.Context, e map[string]any) (any, error) { got = e; return nil, nil }, opts...)
		}, item, nil, rounded},
		"named any": {func(opts []middleware.Option) any {
			type event any
			return middleware.WithLock(byItem, func(e event) error { got = e; return nil }, opts...)
		}, item, nil, rounded},
		"any, WithUseNumber": {func(opts []middleware.Option) any {
			return middleware.WithLock(byItem, func(e any) error { got = e; return nil }, opts...)
		}, item, []lambda.Option{lambda.WithUseNumber(true)}, first},
		"any, passed as any": {func(opts []middleware.Option) any {
			return middleware.WithLock(byItem, any(func(_ context.Context, e json.RawMessage) error { got = string(e); return nil }), opts...)
		}, item, nil, first},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			h := lambda.NewHandlerWithOptions(c.wrap(f.options()), c.options...)
			for range 2 {
				expect.Value(h.Invoke(t.Context(), []byte(c.payload(first))))(t)
			}
			if k := f.of(lock.OutcomeAcquired); len(k) != 1 || k[0].Key.Name != c.want {
				t.Errorf("acquired %v, want %s once", k, c.want)
			}
			if text, ok := got.(string); ok && text != item(first) {
				t.Errorf("the handler got %s", text)
			}
			if _, err := h.Invoke(t.Context(), []byte(c.payload(second))); err != nil || f.count(lock.OutcomeAcquired) != 2 {
				t.Errorf("%v; the second order is not one of its own", err)
			}
		})
	}
}

// TestEventOfAnyJSON shows what a key function gets from a handler that takes
// any JSON, whatever the caller passes.
func TestEventOfAnyJSON(t *testing.T) {
	t.Parallel()
	var got order
	key := func(_ context.Context, o order) (lock.Key, error) { got = o; return lock.Key{Name: "n"}, nil }
	want := order{ID: "1", Item: 17}
	for name, c := range map[string]struct {
		event any
		want  order
	}{
		"decoded by the runtime": {map[string]any{"id": "1", "item": 17.0}, want},
		"json.Number":            {map[string]any{"id": "1", "item": json.Number("17")}, want},
		"json.RawMessage":        {json.RawMessage(`{"id":"1","item":17}`), want},
		"bytes":                  {[]byte(`{"id":"1","item":17}`), want},
		"itself":                 {want, want},
		"pointer to it":          {&want, want},
		"nil pointer to it":      {(*order)(nil), order{}},
		"null":                   {nil, order{}},
	} {
		t.Run(name, func(t *testing.T) {
			h := middleware.WithLock(key, func(_ context.Context, e any) error { return nil }, newFixture().options()...)
			got = order{ID: "of the case before"}
			if err := h(t.Context(), c.event); err != nil || got != c.want {
				t.Errorf("%+v, %v; want %+v", got, err, c.want)
			}
		})
	}
	t.Run("JSON to JSON", func(t *testing.T) {
		raw := func(_ context.Context, b json.RawMessage) (lock.Key, error) { return lock.Key{Name: string(b)}, nil }
		f := newFixture()
		expect.OK(t, middleware.WithLock(raw, func(any) error { return nil }, f.options()...)(map[string]any{"b": 1, "a": "<"}))
		expect.OK(t, middleware.WithLock(raw, func([]byte) error { return nil }, f.options()...)([]byte(`{ "b": 1}`)))
		k := f.of(lock.OutcomeAcquired)
		if len(k) != 2 || k[0].Key.Name != `{"a":"\u003c","b":1}` || k[1].Key.Name != `{ "b": 1}` {
			t.Errorf("%v", k)
		}
	})
	t.Run("itself, not its JSON", func(t *testing.T) {
		type hidden struct {
			ID string `json:"-"`
		}
		key := func(_ context.Context, e hidden) (lock.Key, error) { return lock.Key{Name: e.ID}, nil }
		h := middleware.WithLock(key, func(any) error { return nil }, newFixture().options()...)
		for _, e := range []any{hidden{"1"}, &hidden{"1"}} {
			expect.OK(t, h(e))
		}
	})
	t.Run("a copy", func(t *testing.T) { // F25
		var kept []byte
		keep := func(_ context.Context, b []byte) (lock.Key, error) { kept = b; return lock.Key{Name: "n"}, nil }
		h := middleware.WithLock(keep, func(e json.RawMessage) error { clear(e); return nil }, newFixture().options()...)
		if err := h(json.RawMessage(`{ }`)); err != nil || string(kept) != "{ }" {
			t.Errorf("the key function was given %q, and not a copy; %v", kept, err)
		}
	})
}

// TestAnyJSONIsRefused shows that an event that gives no key does not run, with
// the errors of a raw handler.
func TestAnyJSONIsRefused(t *testing.T) { // F31
	t.Parallel()
	for name, c := range map[string]struct {
		event any
		want  string
	}{
		"malformed key":     {json.RawMessage(`{"Records":[{"s3":{"object":{"key":"a%zz"}}}]}`), "event cannot be decoded as events.S3Event"},
		"the same, decoded": {map[string]any{"Records": []any{map[string]any{"s3": map[string]any{"object": map[string]any{"key": "a%zz"}}}}}, "event cannot be decoded as events.S3Event"},
		"not JSON":          {[]byte(`{`), "event cannot be decoded as events.S3Event"},
		"array":             {[]byte(` [{"detail-type":"order"}]`), "event is an array, as pipes and custom event buses of EventBridge send it: use EachEventBridgeEvent"},
		"empty":             {[]byte{}, "event cannot be decoded as events.S3Event"},
		"other source":      {map[string]any{"source": "aws.ec2", "detail-type": "x", "detail": map[string]any{}}, "the event holds an EventBridge event"},
		"without JSON form": {map[string]any{"f": func() {}}, "event is a map[string]interface {}, which has no JSON form"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ran := false
			h := middleware.WithLock(keyfuncs.S3Object, func(any) error { ran = true; return nil }, newFixture().options()...)
			err := h(c.event)
			var e *lock.NoKeyError
			if !errors.As(err, &e) || !strings.Contains(e.Error(), c.want) || ran {
				t.Errorf("%v, want a NoKeyError with %q; the handler ran: %v", err, c.want, ran)
			}
		})
	}
	t.Run("array with a malformed order", func(t *testing.T) {
		key := func(context.Context, []order) (lock.Key, error) { return lock.Key{Name: "n"}, nil }
		err := middleware.WithLock(key, func(json.RawMessage) error { return nil }, newFixture().options()...)(json.RawMessage(`[{"id":"1"},{"id":2}]`))
		if !errors.As(err, new(*lock.NoKeyError)) || !strings.Contains(err.Error(), "event cannot be decoded as []middleware_test.order") {
			t.Errorf("%v, want a NoKeyError that does not blame the array", err)
		}
	})
	t.Run("s3:TestEvent", func(t *testing.T) {
		f := newFixture()
		h := middleware.WithLock(keyfuncs.S3Object, func(any) error { return nil }, f.options()...)
		expect.OK(t, h(json.RawMessage(`{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"b"}`)))
		f.want(t, middleware.OutcomeIgnored)
	})
}

// TestWrongOrderPanics shows that a wrapper that cannot be inside says so, and
// what to wrap instead.
func TestWrongOrderPanics(t *testing.T) {
	t.Parallel()
	opts := newFixture().options()
	key := keyfuncs.IdempotencyKey[events.APIGatewayV2HTTPRequest]
	const adapter = "httpadapter.NewV2(handler).ProxyWithContext"
	for name, c := range map[string]struct {
		use    func()
		within []string
	}{
		"http.Handler":     {func() { middleware.WithLock(key, http.Handler(http.NewServeMux()), opts...) }, []string{"*http.ServeMux", adapter}},
		"router":           {func() { middleware.WithLock(key, http.NewServeMux(), opts...) }, []string{"*http.ServeMux", adapter}},
		"http.HandlerFunc": {func() { middleware.WithLock(key, http.HandlerFunc(http.NotFound), opts...) }, []string{"http.HandlerFunc", adapter}},
		"HTTP function":    {func() { middleware.WithLock(key, http.NotFound, opts...) }, []string{"func(http.ResponseWriter, *http.Request)", adapter}},
		"nrlambda without an application": {func() {
			middleware.WithLock(byOrder, lambda.NewHandler(func(order) error { return nil }), opts...)
		}, []string{"the wrapped function to nrlambda.Wrap"}},
		"JSON key": {func() {
			middleware.WithLock(func(context.Context, json.RawMessage) (lock.Key, error) { return lock.Key{}, nil }, func(order) error { return nil }, opts...)
		}, []string{"takes middleware_test.order", "jmespath.Typed"}},
		"event that cannot be decoded": {func() {
			middleware.WithLock(func(context.Context, error) (lock.Key, error) { return lock.Key{}, nil }, func(any) error { return nil }, opts...)
		}, []string{"takes interface {}, but the key function takes error"}},
	} {
		t.Run(name, func(t *testing.T) { wantPanic(t, c.use, c.within...) })
	}
}
