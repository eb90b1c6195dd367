package middleware_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// bodyEvent is an event of the user's that does not show which gateway sent it.
type bodyEvent struct {
	Body string `json:"body"`
}

// byValue is a handler of which only its results show that it answers over
// HTTP.
type byValue func(t *testing.T, f *fixture, do func() reply) func() (reply, error)

func valued[E, R any](event E, build func(reply) R) byValue {
	return func(t *testing.T, f *fixture, do func() reply) func() (reply, error) {
		key := func(context.Context, E) (lock.Key, error) { return lock.Key{Name: "n", Event: "e"}, nil }
		h := middleware.WithLock(key, func(context.Context, E) (R, error) { return build(do()), nil }, f.options()...)
		return func() (reply, error) {
			out, err := h(t.Context(), event)
			return sent(t, out, err)
		}
	}
}

func valuedBytes(t *testing.T, f *fixture, do func() reply) func() (reply, error) {
	key := func(context.Context, bodyEvent) (lock.Key, error) { return lock.Key{Name: "n", Event: "e"}, nil }
	h := middleware.WithLock(key, lambda.Handler(rawFunc(func([]byte) ([]byte, error) { return toJSON(t, restOf(do())), nil })), f.options()...)
	return func() (reply, error) {
		out, err := h.Invoke(t.Context(), []byte(`{"body":"b"}`))
		return sent(t, json.RawMessage(out), err)
	}
}

var byValues = map[string]byValue{
	"map":                valued(bodyEvent{}, mapOf(v2Of)),
	"defined map":        valued(bodyEvent{}, func(r reply) definedMap { return mapOf(v2Of)(r) }),
	"any of a map":       valued(bodyEvent{}, asAny(mapOf(restOf))),
	"any of a response":  valued(bodyEvent{}, asAny(v2Of)),
	"any of a pointer":   valued(&bodyEvent{}, asAny(pointerTo(restOf))),
	"any of a defined":   valued(bodyEvent{}, asAny(definedOf)),
	"any of an embedded": valued(bodyEvent{}, asAny(pointerTo(embeddedOf))),
	"any of an own type": valued(bodyEvent{}, asAny(ownOf)),
	"any of a stream":    valued(bodyEvent{}, asAny(urlStreamOf)),
	"RawMessage":         valued(bodyEvent{}, func(r reply) json.RawMessage { b, _ := json.Marshal(restOf(r)); return b }),
	"own type of a map":  valued(map[string]any{"body": "b"}, ownOf),
	"own type of JSON":   valued(json.RawMessage(`{"body":"b"}`), pointerTo(ownOf)),
	"map of any":         valued[any](map[string]any{"body": "b"}, mapOf(restOf)),
	"bytes of a Handler": valuedBytes,
	"any of an order":    valued(order{ID: "1"}, asAny(albOf)),
}

// TestHTTPByValue shows that a result with a status is a response, although
// neither the types nor the payload say so: after a failure the retry runs, and
// a duplicate of the success gets it again.
func TestHTTPByValue(t *testing.T) { // F49
	t.Parallel()
	for name, use := range byValues {
		for _, code := range []int{100, 199, 401, 409, 429, 500, 503, 599} {
			t.Run(name+" "+strconv.Itoa(code), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f, runs := newFixture(), 0
					call := use(t, f, func() reply {
						if runs++; runs <= 2 {
							return reply{status: code, body: "later"}
						}
						return reply{status: http.StatusCreated, body: "receipt"}
					})
					for _, want := range []reply{{status: code, body: "later"}, {status: code, body: "later"}, {status: 201, body: "receipt"}} {
						if got, err := call(); err != nil || got.status != want.status || got.body != want.body || got.mark() != "" {
							t.Errorf("%+v, %v; want %+v", got, err, want)
						}
					}
					got, err := call()
					if err != nil || got.status != http.StatusCreated || got.body != "receipt" || got.mark() != "true" || runs != 3 {
						t.Errorf("the duplicate got %+v, %v after %d runs", got, err, runs)
					}
				})
			})
		}
	}
}

// TestHTTPByValueOfAnOrder shows the same for a key that has only an Order: a
// retry of what failed is not stale.
func TestHTTPByValueOfAnOrder(t *testing.T) { // F49
	t.Parallel()
	runs := 0
	h := middleware.WithLock(func(context.Context, order) (lock.Key, error) { return lock.Key{Name: "n", Order: "7"}, nil }, func(context.Context, order) (any, error) {
		runs++
		return map[string]any{"statusCode": http.StatusServiceUnavailable}, nil
	}, newFixture().options()...)
	for range 2 {
		_, err := h(t.Context(), order{})
		expect.OK(t, err)
	}
	if runs != 2 {
		t.Errorf("%d runs of an event that failed twice", runs)
	}
}
