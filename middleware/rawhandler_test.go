package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// echo is a raw handler that returns its payload.
type echo struct{}

func (echo) Invoke(_ context.Context, payload []byte) ([]byte, error) { return payload, nil }

// TestRawHandler shows that key functions of every kind of event fit a raw
// handler, and that its duplicates are replayed or skipped as bytes.
func TestRawHandler(t *testing.T) {
	t.Parallel()
	payload := []byte(`{"id":"1","item":9007199254740993}`)
	for name, wrap := range map[string]func(opts []middleware.Option) lambda.Handler{
		"decoded": func(opts []middleware.Option) lambda.Handler {
			return middleware.WithLock(byOrder, lambda.Handler(echo{}), opts...)
		},
		"bytes": func(opts []middleware.Option) lambda.Handler {
			key := func(_ context.Context, b []byte) (lock.Key, error) { return lock.Key{Name: "n", Event: string(b)}, nil }
			return middleware.WithLock(key, lambda.Handler(echo{}), opts...)
		},
		"json.RawMessage": func(opts []middleware.Option) lambda.Handler {
			key := func(_ context.Context, b json.RawMessage) (lock.Key, error) {
				return lock.Key{Name: "n", Event: string(b)}, nil
			}
			return middleware.WithLock(key, lambda.Handler(echo{}), opts...)
		},
		"any": func(opts []middleware.Option) lambda.Handler {
			key := func(_ context.Context, e any) (lock.Key, error) {
				return lock.Key{Name: "n", Event: string(e.(json.RawMessage))}, nil
			}
			return middleware.WithLock(key, lambda.Handler(echo{}), opts...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			replaying := wrap(f.options(middleware.OnCompleted(middleware.Replay)))
			for range 2 {
				if out, err := replaying.Invoke(t.Context(), payload); string(out) != string(payload) || err != nil {
					t.Errorf("%s, %v", out, err)
				}
			}
			f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeAlreadyCompleted)
			skipping := wrap(f.options())
			if out, err := skipping.Invoke(t.Context(), payload); string(out) != "null" || err != nil {
				t.Errorf("skipped: %s, %v", out, err)
			}
		})
	}
	t.Run("malformed event", func(t *testing.T) { // F31
		w := middleware.WithLock(keyfuncs.S3Object, lambda.Handler(echo{}), newFixture().options()...)
		if _, err := w.Invoke(t.Context(), []byte(`{"Records":[{"s3":{"object":{"key":"a%zz"}}}]}`)); !errors.As(err, new(*lock.NoKeyError)) {
			t.Errorf("%v, want a NoKeyError", err)
		}
	})
	t.Run("replaced result", func(t *testing.T) {
		w := middleware.WithLock(byOrder, lambda.Handler(echo{}), newFixture().options(middleware.OnCompleted(middleware.Replay))...)
		for _, c := range []struct{ payload, want string }{{`{"id":"1"}`, `{"id":"1"}`}, {`{"id":"2"}`, `{"id":"2"}`}, {`{"id":"1"}`, "null"}} {
			if out, err := w.Invoke(t.Context(), []byte(c.payload)); string(out) != c.want || err != nil {
				t.Errorf("%s: %s, %v; want %s", c.payload, out, err, c.want)
			}
		}
	})
	t.Run("failed", func(t *testing.T) {
		f := newFixture()
		w := middleware.WithLock(byOrder, lambda.Handler(rawFunc(func([]byte) ([]byte, error) { return nil, errRecord })), f.options()...)
		for range 2 { // a failed event runs again
			if _, err := w.Invoke(t.Context(), payload); err != errRecord {
				t.Errorf("%v, want the handler's error", err)
			}
		}
		f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeAcquired, lock.OutcomeReleased)
	})
	t.Run("held, Respond", func(t *testing.T) {
		var w lambda.Handler
		w = middleware.WithLock(byOrder, lambda.Handler(rawFunc(func([]byte) ([]byte, error) {
			out, err := w.Invoke(t.Context(), []byte(`{"id":"2"}`))
			if string(out) != `{"n":1}` || err != nil {
				t.Errorf("held: %s, %v", out, err)
			}
			return nil, nil
		})), newFixture().options(middleware.OnHeld(middleware.Respond(map[string]int{"n": 1})))...)
		if _, err := w.Invoke(t.Context(), payload); err != nil {
			t.Error(err)
		}
	})
}

// rawFunc is a raw handler.
type rawFunc func(payload []byte) ([]byte, error)

func (f rawFunc) Invoke(_ context.Context, payload []byte) ([]byte, error) { return f(payload) }

// oneBuffer is a raw handler that returns the same buffer every time.
type oneBuffer struct{ buf bytes.Buffer }

func (r *oneBuffer) Invoke(_ context.Context, payload []byte) ([]byte, error) {
	r.buf.Reset()
	fmt.Fprintf(&r.buf, `{"answer to":%s}`, payload)
	return r.buf.Bytes(), nil
}

// TestRawReplayKeepsACopy shows that a stored result does not change with the
// buffer that the handler returned: its own, or the payload, which the runtime
// uses again.
func TestRawReplayKeepsACopy(t *testing.T) { // F39
	t.Parallel()
	for name, h := range map[string]lambda.Handler{"own buffer": &oneBuffer{}, "payload": echo{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			w := middleware.WithLock(lockPerOrder, h, f.options(middleware.OnCompleted(middleware.Replay))...)
			pooled := make([]byte, 0, 100)
			invoke := func(payload string) string {
				out := expect.Value(w.Invoke(t.Context(), append(pooled, payload...)))(t)
				defer clear(out) // the caller may use the answer's buffer again
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

// TestRawReplayOfAnyBytes shows that bytes are replayed unchanged, whether they
// are JSON or not.
func TestRawReplayOfAnyBytes(t *testing.T) { // F35
	t.Parallel()
	for _, result := range []string{" {\"a\": 1}\n", "{", "text"} {
		h := middleware.WithLock(byOrder, lambda.Handler(rawFunc(func([]byte) ([]byte, error) { return []byte(result), nil })),
			newFixture().options(middleware.OnCompleted(middleware.Replay))...)
		for range 2 {
			if out, err := h.Invoke(t.Context(), []byte(`{"id":"1"}`)); string(out) != result || err != nil {
				t.Errorf("%q, %v; want %q", out, err, result)
			}
		}
	}
}

// TestRawWithoutALock shows that nothing is asked about a result that completes
// no event.
func TestRawWithoutALock(t *testing.T) { // F13
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.faulty.Always(fault.Acquire, fault.DropBefore)
		h := middleware.WithLock(byOrder, lambda.Handler(echo{}), f.options(middleware.FailOpen(), middleware.CompletedIf(func(any) bool {
			t.Error("asked whether the event is completed")
			return true
		}))...)
		if _, err := h.Invoke(t.Context(), []byte(`{"id":"1"}`)); err != nil {
			t.Error(err)
		}
	})
}

// TestRawPayloadIsCopiedForTheKey shows that a key function may keep the bytes
// it was given, and that the handler gets those of the runtime.
func TestRawPayloadIsCopiedForTheKey(t *testing.T) {
	t.Parallel()
	payload := []byte(`{"id":"1"}`)
	var kept []byte
	for name, w := range map[string]lambda.Handler{
		"bytes": middleware.WithLock(func(_ context.Context, b []byte) (lock.Key, error) {
			kept = b
			return lock.Key{Name: "n"}, nil
		}, lambda.Handler(echo{}), newFixture().options()...),
		"message": middleware.WithLock(func(_ context.Context, b json.RawMessage) (lock.Key, error) {
			kept = b
			return lock.Key{Name: "n"}, nil
		}, lambda.Handler(echo{}), newFixture().options()...),
		"any": middleware.WithLock(func(_ context.Context, e any) (lock.Key, error) {
			kept = e.(json.RawMessage)
			return lock.Key{Name: "n"}, nil
		}, lambda.Handler(echo{}), newFixture().options()...),
	} {
		t.Run(name, func(t *testing.T) {
			out, err := w.Invoke(t.Context(), payload)
			if err != nil || &out[0] != &payload[0] {
				t.Errorf("the handler did not get the runtime's bytes; %v", err)
			}
			if string(kept) != `{"id":"1"}` || &kept[0] == &payload[0] {
				t.Errorf("the key function was given %s, and not a copy", kept)
			}
		})
	}
}
