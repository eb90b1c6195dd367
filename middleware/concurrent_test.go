package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/robustness/patience"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestConcurrentInvocations shows for every kind of handler that each of 64
// invocations in one process, as on managed instances, gets the answer to its
// own event.
func TestConcurrentInvocations(t *testing.T) { // F39
	t.Parallel()
	const invocations, ids = 64, 16
	replay := middleware.OnCompleted(middleware.Replay)
	raw := middleware.WithLock(lockPerOrder, lambda.Handler(echo{}), newFixture().options(replay)...)
	pool := sync.Pool{New: func() any { return make([]byte, 0, 64) }}
	result := middleware.WithLock(lockPerOrder, func(_ context.Context, o order) (*order, error) { return &o, nil }, newFixture().options(replay)...)
	plain := middleware.WithLock(lockPerOrder, func(context.Context, order) error { return nil }, newFixture().options()...)
	stream := middleware.WithLock(lockPerOrder, func(_ context.Context, o order) (io.Reader, error) { return strings.NewReader(o.ID), nil }, newFixture().options()...)
	batch := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error { return nil }, newFixture().options()...)
	for name, invoke := range map[string]func(id string) (string, error){
		"raw": func(id string) (string, error) {
			payload := append(pool.Get().([]byte)[:0], `{"id":"`+id+`"}`...)
			defer pool.Put(payload) //nolint:staticcheck // SA6002: as the runtime's pool, the copy does not matter here
			out, err := raw.Invoke(patience.Context(t), payload)
			return strings.TrimSuffix(strings.TrimPrefix(string(out), `{"id":"`), `"}`), err
		},
		"result": func(id string) (string, error) {
			o, err := result(patience.Context(t), order{ID: id})
			if o == nil {
				return "", err
			}
			return o.ID, err
		},
		"error only": func(id string) (string, error) { return "", plain(patience.Context(t), order{ID: id}) },
		"stream": func(id string) (string, error) {
			r, err := stream(patience.Context(t), order{ID: id})
			if r == nil {
				return "", err
			}
			b, err := io.ReadAll(r)
			return string(b), err
		},
		"batch": func(id string) (string, error) {
			_, err := batch(patience.Context(t), sqsBatch(message(id, ""), message(id, ""), message("m"+id, "")))
			return "", err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all sync.WaitGroup
			for i := range invocations {
				all.Go(func() {
					id := fmt.Sprint("n", i%ids)
					for range 20 {
						out, err := invoke(id)
						if out != "" && out != id || err != nil && !errors.Is(err, lock.ErrHeld) {
							t.Errorf("%s was answered with %q, %v", id, out, err)
						}
					}
				})
			}
			all.Wait()
		})
	}
}

// TestHandlerThatCallsItselfAgain shows that a handler may call its wrapped
// self with another event, and gets an error with the same one.
func TestHandlerThatCallsItselfAgain(t *testing.T) {
	t.Parallel()
	f := newFixture()
	var again func(context.Context, order) (string, error)
	again = middleware.WithLock(lockPerOrder, func(ctx context.Context, o order) (string, error) {
		switch o.ID {
		case "same":
			_, err := again(ctx, o)
			if !errors.As(err, new(*lock.ConfigError)) {
				t.Errorf("the same event inside itself: %v, want a ConfigError, not a wait to the deadline", err)
			}
		case "other":
			if out, err := again(ctx, order{ID: "inner"}); out != "inner" || err != nil {
				t.Errorf("another event inside: %q, %v", out, err)
			}
			if lease, _ := lock.FromContext(ctx); lease.Key.Name != "other" {
				t.Errorf("the lease became that of %q", lease.Key.Name)
			}
		}
		return o.ID, nil
	}, f.options(middleware.OnCompleted(middleware.Replay))...)
	for _, id := range []string{"same", "other", "same", "inner"} {
		if out, err := again(t.Context(), order{ID: id}); out != id || err != nil {
			t.Errorf("%s: %q, %v", id, out, err)
		}
	}
}
