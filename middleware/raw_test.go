package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

type echo struct{}

func (echo) Invoke(_ context.Context, payload []byte) ([]byte, error) { return payload, nil }

func TestRawHandler(t *testing.T) {
	t.Parallel()
	payload := []byte(`{"id":"1","item":9007199254740993}`)
	for name, h := range map[string]func(*quiet, ...middleware.Option) lambda.Handler{
		"decoded": func(q *quiet, o ...middleware.Option) lambda.Handler {
			return middleware.WithLock(byOrder, lambda.Handler(echo{}), q.with(o...)...)
		},
		"raw": func(q *quiet, o ...middleware.Option) lambda.Handler {
			key := func(_ context.Context, b []byte) (lock.Key, error) { return lock.Key{Name: "n", Event: string(b)}, nil }
			return middleware.WithLock(key, lambda.Handler(echo{}), q.with(o...)...)
		},
		"message": func(q *quiet, o ...middleware.Option) lambda.Handler {
			key := func(_ context.Context, b json.RawMessage) (lock.Key, error) {
				return lock.Key{Name: "n", Event: string(b)}, nil
			}
			return middleware.WithLock(key, lambda.Handler(echo{}), q.with(o...)...)
		},
		"any": func(q *quiet, o ...middleware.Option) lambda.Handler {
			key := func(_ context.Context, e any) (lock.Key, error) {
				return lock.Key{Name: "n", Event: string(e.(json.RawMessage))}, nil
			}
			return middleware.WithLock(key, lambda.Handler(echo{}), q.with(o...)...)
		},
	} {
		q := newQuiet()
		w := h(q, middleware.OnCompleted(middleware.Replay))
		for range 2 {
			if out, err := w.Invoke(t.Context(), payload); string(out) != string(payload) || err != nil {
				t.Errorf("%s: %s, %v", name, out, err)
			}
		}
		q.want(t, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeAlreadyCompleted)
		skipping := h(q)
		if out, err := skipping.Invoke(t.Context(), payload); string(out) != "null" || err != nil {
			t.Errorf("%s, skipped: %s, %v", name, out, err)
		}
	}
	q := newQuiet()
	w := middleware.WithLock(keyfuncs.S3Object, lambda.Handler(echo{}), q.with()...)
	if _, err := w.Invoke(t.Context(), []byte(`{"Records":[{"s3":{"object":{"key":"a%zz"}}}]}`)); !errors.As(err, new(*lock.KeyError)) { // F31
		t.Errorf("malformed escape: %v, want a KeyError", err)
	}
	if out, err := w.Invoke(t.Context(), []byte(`{"Event":"s3:TestEvent"}`)); string(out) != "null" || err != nil {
		t.Errorf("test event: %s, %v", out, err)
	}
	held := newQuiet()
	var outer lambda.Handler
	outer = middleware.WithLock(byOrder, lambda.Handler(nestedHandler{&outer, t}), held.with(middleware.OnHeld(middleware.Respond(map[string]int{"n": 1})))...)
	if _, err := outer.Invoke(t.Context(), payload); err != nil {
		t.Error(err)
	}
}

type nestedHandler struct {
	outer *lambda.Handler
	t     *testing.T
}

func (n nestedHandler) Invoke(context.Context, []byte) ([]byte, error) {
	out, err := (*n.outer).Invoke(n.t.Context(), []byte(`{"id":"2"}`))
	if string(out) != `{"n":1}` || err != nil {
		n.t.Errorf("held: %s, %v", out, err)
	}
	return nil, nil
}

// reuses answers from one buffer, as a handler does that allocates once.
type reuses struct{ buf bytes.Buffer }

func (r *reuses) Invoke(_ context.Context, payload []byte) ([]byte, error) {
	r.buf.Reset()
	fmt.Fprintf(&r.buf, `{"answer to":%s}`, payload)
	return r.buf.Bytes(), nil
}

func eachOrder(_ context.Context, o order) (lock.Key, error) {
	return lock.Key{Name: o.ID, Event: o.ID}, nil
}

// TestRawReplayKeepsACopy: the runtime takes payloads from a pool of buffers, and a
// handler may answer with its payload or from a buffer of its own. What is kept for
// Replay must not change with them.
func TestRawReplayKeepsACopy(t *testing.T) { // F39
	t.Parallel()
	for name, h := range map[string]lambda.Handler{"own buffer": &reuses{}, "payload": echo{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQuiet()
			w := middleware.WithLock(eachOrder, h, q.with(middleware.OnCompleted(middleware.Replay))...)
			pooled := make([]byte, 0, 100)
			invoke := func(payload string) string {
				out, err := w.Invoke(t.Context(), append(pooled, payload...))
				if err != nil {
					t.Fatal(err)
				}
				defer clear(out) // whoever got an answer may reuse it
				return string(out)
			}
			first := invoke(`{"id":"1","item":1}`)
			invoke(`{"id":"2","item":2}`) // another name, so that the first result stays
			for range 2 {
				if got := invoke(`{"id":"1","item":3}`); got != first {
					t.Errorf("replayed %q, want %s", got, first)
				}
			}
		})
	}
}

// TestRawPayloadIsCopiedForTheKey: a key function may keep the bytes it was given, and
// the handler gets those of the runtime.
func TestRawPayloadIsCopiedForTheKey(t *testing.T) {
	t.Parallel()
	payload := []byte(`{"id":"1"}`)
	var kept []byte
	for name, w := range map[string]lambda.Handler{
		"bytes": middleware.WithLock(func(_ context.Context, b []byte) (lock.Key, error) {
			kept = b
			return lock.Key{Name: "n"}, nil
		}, lambda.Handler(echo{}), newQuiet().with()...),
		"message": middleware.WithLock(func(_ context.Context, b json.RawMessage) (lock.Key, error) {
			kept = b
			return lock.Key{Name: "n"}, nil
		}, lambda.Handler(echo{}), newQuiet().with()...),
		"any": middleware.WithLock(func(_ context.Context, e any) (lock.Key, error) {
			kept = e.(json.RawMessage)
			return lock.Key{Name: "n"}, nil
		}, lambda.Handler(echo{}), newQuiet().with()...),
	} {
		out, err := w.Invoke(t.Context(), payload)
		if err != nil || &out[0] != &payload[0] {
			t.Errorf("%s: the handler did not get the runtime's bytes; %v", name, err)
		}
		if string(kept) != `{"id":"1"}` || &kept[0] == &payload[0] {
			t.Errorf("%s: the key function was given %s, and not a copy", name, kept)
		}
	}
}
