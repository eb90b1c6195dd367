package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/lambdalock/lambdalock/keyfuncs/jmespath"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestRejectedDuplicateChangesNothing: a duplicate that was refused, because
// the first was still running or had another payload, deleted the record of the
// first, so that the next duplicate ran as well
// (powertools-lambda-typescript#5675). And a record that was completed lost the
// digest of its payload, so that the same payload was refused as another one
// (powertools-lambda-typescript#5705). Here the row is unchanged.
func TestRejectedDuplicateChangesNothing(t *testing.T) { // F21, F37
	t.Parallel()
	store := memstore.New()
	row := func() any {
		row, err := store.Read(t.Context(), "/orders")
		if err != nil || row.Unknown() {
			t.Fatalf("%+v, %v", row, err)
		}
		return row
	}
	key := func(_ context.Context, o order) (lock.Key, error) {
		return lock.Key{Name: "orders", Event: o.ID, Payload: string(rune('0' + o.Item))}, nil
	}
	var h func(context.Context, order) (string, error)
	depth := 0
	refused := func(when string, want error) {
		t.Helper()
		for _, item := range []int64{1, 2} {
			before := row()
			_, err := h(t.Context(), order{ID: "1", Item: item})
			mismatch := errors.As(err, new(*lock.PayloadMismatchError))
			if mismatch != (item == 2) || item == 1 && !errors.Is(err, want) {
				t.Errorf("%s, the duplicate with payload %d got %v", when, item, err)
			}
			if after := row(); !reflect.DeepEqual(after, before) {
				t.Errorf("%s, the duplicate with payload %d changed the row from %+v to %+v", when, item, before, after)
			}
		}
	}
	h = middleware.WithLock(key, func(context.Context, order) (string, error) {
		if depth++; depth == 1 {
			refused("while the first runs", lock.ErrHeld)
		}
		return "done", nil
	}, middleware.Store(store), noLog, middleware.OnCompleted(middleware.Fail))
	if out, err := h(t.Context(), order{ID: "1", Item: 1}); out != "done" || err != nil {
		t.Errorf("the first returned %q, %v", out, err)
	}
	refused("after the first", lock.ErrCompleted)
	if depth != 1 {
		t.Errorf("ran %d times, want once", depth)
	}
}

// TestKeyOfAMutatedEvent: the record was completed or deleted under a key that
// was computed again after the function, which had changed its event: a success
// stayed in progress under the first key, and so did a failure
// (powertools-lambda-typescript#5715, mended by #5717). Here the key is
// computed once.
func TestKeyOfAMutatedEvent(t *testing.T) { // F25
	t.Parallel()
	whole := jmespath.Typed[map[string]any](jmespath.Payload)
	checked := func(_ context.Context, e map[string]any) (lock.Key, error) {
		payload, err := json.Marshal(e)
		return lock.Key{Name: "orders", Event: "1", Payload: string(payload)}, err
	}
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		key  func(context.Context, map[string]any) (lock.Key, error)
		fail bool
		runs int // of two deliveries
	}{
		"digest of the event, success":  {whole, false, 1},
		"digest of the event, failure":  {whole, true, 2},
		"event with a payload, success": {checked, false, 1},
		"event with a payload, failure": {checked, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, runs := memstore.New(), 0
			h := middleware.WithLock(c.key, func(_ context.Context, e map[string]any) error {
				runs++
				e["processed"] = true
				delete(e, "id")
				if c.fail {
					return boom
				}
				return nil
			}, middleware.Store(store), noLog)
			for range 2 {
				if err := h(t.Context(), map[string]any{"id": "1"}); c.fail != (err != nil) || err != nil && err != boom { //nolint:errorlint // the same error
					t.Errorf("got %v", err)
				}
			}
			if runs != c.runs {
				t.Errorf("ran %d times, want %d", runs, c.runs)
			}
			for row, err := range store.Rows(t.Context(), "") {
				if err != nil || row.Token != "" {
					t.Errorf("left in progress: %+v, %v", row, err)
				}
			}
		})
	}
}

// TestNestedWrappersOfOneStore: the last wrapper of a store set the prefix of
// the keys for all of them, so that a function around another one completed the
// record of the inner one, and left its own in progress
// (powertools-lambda-typescript#5707). Here each wrapper has its own namespace
// and settings.
func TestNestedWrappersOfOneStore(t *testing.T) { // F25
	t.Parallel()
	store, runs := memstore.New(), map[string]int{}
	key := func(_ context.Context, o order) (lock.Key, error) { return lock.Key{Name: "orders", Event: o.ID}, nil }
	wrap := func(namespace string, f func(context.Context, order) (string, error)) func(context.Context, order) (string, error) {
		return middleware.WithLock(key, func(ctx context.Context, o order) (string, error) {
			runs[namespace]++
			return f(ctx, o)
		}, middleware.Store(store), middleware.Namespace(namespace), middleware.OnCompleted(middleware.Replay), noLog)
	}
	fail := errors.New("the first run fails")
	var inner func(context.Context, order) (string, error)
	outer := wrap("outer", func(ctx context.Context, o order) (string, error) {
		paid, err := inner(ctx, o)
		if runs["outer"] == 1 {
			err = fail
		}
		return "sent, and " + paid, err
	})
	inner = wrap("inner", func(context.Context, order) (string, error) { return "paid", nil })
	if _, err := outer(t.Context(), order{ID: "1"}); !errors.Is(err, fail) {
		t.Errorf("the first run returned %v", err)
	}
	for range 2 {
		if out, err := outer(t.Context(), order{ID: "1"}); out != "sent, and paid" || err != nil {
			t.Errorf("the outer function returned %q, %v", out, err)
		}
		if out, err := inner(t.Context(), order{ID: "1"}); out != "paid" || err != nil {
			t.Errorf("the inner function returned %q, %v", out, err)
		}
	}
	if runs["outer"] != 2 || runs["inner"] != 1 {
		t.Errorf("ran %v, want outer twice and inner once", runs)
	}
	for row, err := range store.Rows(t.Context(), "") {
		if err != nil || row.Token != "" {
			t.Errorf("left in progress: %+v, %v", row, err)
		}
	}
}
