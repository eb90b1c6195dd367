package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestHeldPolicies shows what a caller gets while another invocation holds the
// lock.
func TestHeldPolicies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy middleware.HeldPolicy
		want   string
		err    error
	}{
		"Fail":            {middleware.Fail, "", lock.ErrHeld},
		"Skip":            {middleware.Skip, "", nil},
		"Respond":         {middleware.Respond("in progress"), "in progress", nil},
		"Respond nothing": {middleware.Respond(nil), "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var h func(context.Context, order) (string, error)
			h = middleware.WithLock(byOrder, func(context.Context, order) (string, error) {
				out, err := h(t.Context(), order{ID: "2"})
				if out != c.want || !errors.Is(err, c.err) {
					t.Errorf("%q, %v; want %q, %v", out, err, c.want, c.err)
				}
				return "ran", nil
			}, newFixture().options(middleware.OnHeld(c.policy))...)
			if out, err := h(t.Context(), order{ID: "1"}); out != "ran" || err != nil {
				t.Errorf("the holder got %q, %v", out, err)
			}
		})
	}
}

// TestSkipWithoutError shows that Skip does nothing in a handler that returns
// nothing.
func TestSkipWithoutError(t *testing.T) {
	t.Parallel()
	f := newFixture()
	h := middleware.WithLock(byOrder, func(order) { t.Error("the handler ran") }, f.options(middleware.OnHeld(middleware.Skip))...)
	holder := f.acquireElsewhere(t, lock.Key{Name: "orders"})
	defer func() { _ = holder.Release() }()
	h(order{ID: "1"}) // it does not panic
	f.want(t, lock.OutcomeHeld)
}

// TestRetryDuringItsCooldown shows that an event whose own run has failed is
// treated like others while its name stays held.
func TestRetryDuringItsCooldown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		h := middleware.WithLock(byOrder, func(context.Context, order) error {
			if runs++; runs == 1 {
				return errRecord
			}
			return nil
		}, newFixture().options(middleware.OnHeld(middleware.Skip), middleware.HoldAtLeast(time.Hour))...)
		if err := h(t.Context(), order{ID: "1"}); !errors.Is(err, errRecord) {
			t.Errorf("%v, want what the handler returned", err)
		}
		if err := h(t.Context(), order{ID: "1"}); err != nil || runs != 1 {
			t.Errorf("its retry got %v after %d runs", err, runs)
		}
		time.Sleep(2 * time.Hour)
		if err := h(t.Context(), order{ID: "1"}); err != nil || runs != 2 {
			t.Errorf("after the cooldown it got %v after %d runs", err, runs)
		}
	})
}

// TestHeldPolicyOfAnEndedInvocation shows that the policy counts although the
// caller's context has ended by the time the store has answered.
func TestHeldPolicyOfAnEndedInvocation(t *testing.T) {
	t.Parallel()
	f := newFixture()
	holder := f.acquireElsewhere(t, lock.Key{Name: "orders"})
	defer func() { _ = holder.Release() }()
	ctx, cancel := context.WithCancel(t.Context())
	store := f.faulty.Store
	f.faulty.Store = fault.Hooks{Store: store, OnAcquire: func(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
		defer cancel()
		return store.Acquire(ctx, c)
	}}
	h := middleware.WithLock(byOrder, func(context.Context, order) (string, error) { return "ran", nil },
		f.options(middleware.OnHeld(middleware.Respond("in progress")))...)
	if out, err := h(ctx, order{ID: "1"}); out != "in progress" || err != nil {
		t.Errorf("%q, %v; want the chosen answer", out, err)
	}
}

// TestWaitPolicy shows that those who wait run one after the other, and that a
// duplicate among them is skipped.
func TestWaitPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		h := middleware.WithLock(byOrder, func(context.Context, order) error { time.Sleep(2 * time.Second); return nil },
			f.options(middleware.OnHeld(middleware.Wait(time.Minute)))...)
		got := make(chan error)
		for _, id := range []string{"1", "2", "1"} {
			go func() { got <- h(context.Background(), order{ID: id}) }()
		}
		for range 3 {
			if err := <-got; err != nil {
				t.Error(err)
			}
		}
		if n := f.faulty.Requests(fault.Release); n != 2 {
			t.Errorf("%d runs, want one for each of two events", n)
		}
	})
}

// TestCompletedPolicies shows what the duplicate of a completed event gets.
func TestCompletedPolicies(t *testing.T) {
	t.Parallel()
	big := int64(1<<53 + 1)
	for name, c := range map[string]struct {
		policy middleware.CompletedPolicy
		want   order
		err    error
	}{
		"Skip":   {middleware.Skip, order{}, nil},
		"Fail":   {middleware.Fail, order{}, lock.ErrCompleted},
		"Replay": {middleware.Replay, order{"r", big}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := middleware.WithLock(byOrder, func(context.Context, order) (order, error) { return order{"r", big}, nil },
				newFixture().options(middleware.OnCompleted(c.policy))...)
			expect.Value(h(t.Context(), order{ID: "1"}))(t)
			if out, err := h(t.Context(), order{ID: "1"}); out != c.want || !errors.Is(err, c.err) {
				t.Errorf("%+v, %v; want %+v, %v", out, err, c.want, c.err)
			}
		})
	}
}

// TestReplayOfAnything shows that a result declared as any is replayed with all
// digits, and that the duplicate is skipped if the result has no JSON form.
func TestReplayOfAnything(t *testing.T) { // F35
	t.Parallel()
	f := newFixture()
	var result any = map[string]any{"n": int64(1<<53 + 1)}
	h := middleware.WithLock(byOrder, func(context.Context, order) (any, error) { return result, nil }, f.options(middleware.OnCompleted(middleware.Replay))...)
	for range 2 {
		out, err := h(t.Context(), order{ID: "1"})
		if b, _ := json.Marshal(out); string(b) != `{"n":9007199254740993}` || err != nil {
			t.Errorf("%s, %v", b, err)
		}
	}
	f.forget()
	result = func() {}
	if _, err := h(t.Context(), order{ID: "2"}); err != nil {
		t.Errorf("a result that cannot be encoded: %v", err)
	}
	f.want(t, lock.OutcomeAcquired, lock.OutcomeResultDropped, lock.OutcomeReleased)
	if out, err := h(t.Context(), order{ID: "2"}); out != nil || err != nil {
		t.Errorf("its duplicate: %v, %v; want skipped, not run", out, err)
	}
	f.want(t, lock.OutcomeAlreadyCompleted) // and no second report that the result is missing
}

// TestReplayOfRawJSON shows that a duplicate gets the bytes of the first
// result.
func TestReplayOfRawJSON(t *testing.T) { // F35
	t.Parallel()
	f := newFixture()
	const result = `{"page":"<b>&</b>"}`
	h := middleware.WithLock(byOrder, func(context.Context, order) (json.RawMessage, error) { return json.RawMessage(result), nil }, f.options(middleware.OnCompleted(middleware.Replay))...)
	for range 2 {
		if out, err := h(t.Context(), order{ID: "1"}); string(out) != result || err != nil {
			t.Errorf("%s, %v", out, err)
		}
	}
}

// TestReplayIntoAnotherType shows that a duplicate is skipped if the stored
// result does not fit the handler's result type.
func TestReplayIntoAnotherType(t *testing.T) {
	t.Parallel()
	f := newFixture()
	first := middleware.WithLock(byOrder, func(context.Context, order) (string, error) { return "text", nil }, f.options(middleware.OnCompleted(middleware.Replay))...)
	second := middleware.WithLock(byOrder, func(context.Context, order) (int, error) { return 1, nil }, f.options(middleware.OnCompleted(middleware.Replay))...)
	expect.Value(first(t.Context(), order{ID: "1"}))(t)
	if out, err := second(t.Context(), order{ID: "1"}); out != 0 || err != nil {
		t.Errorf("%d, %v; want skipped", out, err)
	}
	if k := f.of(lock.OutcomeResultDropped)[0].Key; k.Event != "1" {
		t.Errorf("reported for %+v", k)
	}
	f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeAlreadyCompleted, lock.OutcomeResultDropped)
}
