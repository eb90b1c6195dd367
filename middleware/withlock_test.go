package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/patience"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestEverySignature shows that every signature that Lambda accepts can be
// wrapped, and returns what the handler returned.
func TestEverySignature(t *testing.T) {
	t.Parallel()
	ran := 0
	result := &order{ID: "result", Item: 1<<53 + 1}
	boom := errors.New("boom")
	static := keyfuncs.Static("job")
	skipHeld := middleware.OnHeld(middleware.Skip)
	for name, call := range map[string]func(t *testing.T, f *fixture) (any, error){
		"()": func(t *testing.T, f *fixture) (any, error) {
			middleware.WithLock(static, func() { ran++ }, f.options(skipHeld)...)()
			return nil, nil
		},
		"(event)": func(t *testing.T, f *fixture) (any, error) {
			middleware.WithLock(byOrder, func(order) { ran++ }, f.options(skipHeld)...)(order{ID: "1"})
			return nil, nil
		},
		"() error": func(t *testing.T, f *fixture) (any, error) {
			return nil, middleware.WithLock(static, func() error { ran++; return boom }, f.options()...)()
		},
		"(event) error": func(t *testing.T, f *fixture) (any, error) {
			return nil, middleware.WithLock(byOrder, func(order) error { ran++; return boom }, f.options()...)(order{ID: "1"})
		},
		"() result": func(t *testing.T, f *fixture) (any, error) {
			return middleware.WithLock(static, func() (*order, error) { ran++; return result, nil }, f.options()...)()
		},
		"(event) result": func(t *testing.T, f *fixture) (any, error) {
			return middleware.WithLock(byOrder, func(order) (*order, error) { ran++; return result, nil }, f.options()...)(order{ID: "1"})
		},
		"(ctx)": func(t *testing.T, f *fixture) (any, error) {
			middleware.WithLock(static, func(context.Context) { ran++ }, f.options(skipHeld)...)(t.Context())
			return nil, nil
		},
		"(ctx, event)": func(t *testing.T, f *fixture) (any, error) {
			middleware.WithLock(byOrder, func(context.Context, order) { ran++ }, f.options(skipHeld)...)(t.Context(), order{ID: "1"})
			return nil, nil
		},
		"(ctx) error": func(t *testing.T, f *fixture) (any, error) {
			return nil, middleware.WithLock(static, func(context.Context) error { ran++; return boom }, f.options()...)(t.Context())
		},
		"(ctx, event) error": func(t *testing.T, f *fixture) (any, error) {
			return nil, middleware.WithLock(byOrder, func(context.Context, order) error { ran++; return boom }, f.options()...)(t.Context(), order{ID: "1"})
		},
		"(ctx) result": func(t *testing.T, f *fixture) (any, error) {
			return middleware.WithLock(static, func(context.Context) (*order, error) { ran++; return result, nil }, f.options()...)(t.Context())
		},
		"(ctx, event) result with error": func(t *testing.T, f *fixture) (any, error) {
			return middleware.WithLock(byOrder, func(ctx context.Context, _ order) (*order, error) {
				if _, ok := lock.FromContext(ctx); !ok {
					t.Error("no lease in the handler's context")
				}
				ran++
				return result, boom
			}, f.options()...)(t.Context(), order{ID: "1"})
		},
		"(ctx, any) of nil": func(t *testing.T, f *fixture) (any, error) { // a key function of anything, and an event that is nil
			return nil, middleware.WithLock(static, func(_ context.Context, e any) error { ran++; return boom }, f.options()...)(t.Context(), nil)
		},
		"as any": func(t *testing.T, f *fixture) (any, error) { // given as any, as lambda.Start takes it
			var h any = func(context.Context, order) error { ran++; return boom }
			return nil, middleware.WithLock(byOrder, h, f.options()...).(func(context.Context, order) error)(t.Context(), order{ID: "1"})
		},
		"named type": func(t *testing.T, f *fixture) (any, error) {
			type named func(context.Context, order) error
			var h named = func(context.Context, order) error { ran++; return boom }
			return nil, middleware.WithLock(byOrder, h, f.options()...)(t.Context(), order{ID: "1"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			before := ran
			out, err := call(t, f)
			if ran != before+1 || err != nil && err != boom || out != nil && !reflect.ValueOf(out).IsNil() && out != result {
				t.Errorf("ran %d times, returned %v, %v", ran-before, out, err)
			}
			f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased)
		})
	}
}

// TestDuplicateIsSkipped shows that a completed event does not run again.
func TestDuplicateIsSkipped(t *testing.T) { // P5
	t.Parallel()
	f := newFixture()
	ran := 0
	h := middleware.WithLock(byOrder, func(context.Context, order) error { ran++; return nil }, f.options()...)
	for range 3 {
		expect.OK(t, h(t.Context(), order{ID: "1"}))
	}
	if ran != 1 {
		t.Errorf("ran %d times", ran)
	}
	f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeAlreadyCompleted, lock.OutcomeAlreadyCompleted)
}

// TestDuplicateInProgressIsNotAcknowledged shows that an event fails, so that
// it is delivered again, while it or another event of its name is in progress.
func TestDuplicateInProgressIsNotAcknowledged(t *testing.T) { // P6
	t.Parallel()
	f := newFixture()
	var h func(context.Context, order) error
	depth := 0
	h = middleware.WithLock(byOrder, func(context.Context, order) error {
		if depth++; depth == 1 {
			err := h(t.Context(), order{ID: "1"})
			if held, ok := err.(*lock.HeldError); !ok || !held.Duplicate {
				t.Errorf("the duplicate got %v, want a HeldError", err)
			}
			if err := h(t.Context(), order{ID: "2"}); !errors.Is(err, lock.ErrHeld) {
				t.Errorf("another event got %v, want a HeldError", err)
			}
		}
		return nil
	}, f.options()...)
	if err := h(t.Context(), order{ID: "1"}); err != nil || depth != 1 {
		t.Errorf("%v after %d runs", err, depth)
	}
	if err := h(t.Context(), order{ID: "2"}); err != nil || depth != 2 {
		t.Errorf("the other event again: %v after %d runs", err, depth)
	}
}

// TestFailedEventRunsAgain shows that an event is completed only if its handler
// returns no error.
func TestFailedEventRunsAgain(t *testing.T) {
	t.Parallel()
	ran := 0
	h := middleware.WithLock(byOrder, func(context.Context, order) (string, error) {
		if ran++; ran < 3 {
			return "", errRecord
		}
		return "", nil
	}, newFixture().options()...)
	for i, want := range []error{errRecord, errRecord, nil, nil} {
		if _, err := h(patience.Context(t), order{ID: "1"}); err != want {
			t.Errorf("delivery %d: %v, want %v", i+1, err, want)
		}
	}
	if ran != 3 {
		t.Errorf("ran %d times, want 3", ran)
	}
}

// TestHandlerThatMutatesItsEvent shows that the key is computed before the
// handler runs.
func TestHandlerThatMutatesItsEvent(t *testing.T) { // F25
	t.Parallel()
	f := newFixture()
	key := func(_ context.Context, o *order) (lock.Key, error) { return lock.Key{Name: "orders", Event: o.ID}, nil }
	h := middleware.WithLock(key, func(_ context.Context, o *order) error { o.ID = "changed"; return nil }, f.options()...)
	for range 2 {
		expect.OK(t, h(t.Context(), &order{ID: "1"}))
	}
	f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeAlreadyCompleted)
}

// TestEventByPointer shows that a handler may take a pointer to the key
// function's event, and that the key function gets the zero event for nil.
func TestEventByPointer(t *testing.T) {
	t.Parallel()
	h := middleware.WithLock(byOrder, func(ctx context.Context, o *order) (string, error) {
		lease, _ := lock.FromContext(ctx)
		return lease.Key.Event, nil
	}, newFixture().options()...)
	for want, event := range map[string]*order{"1": {ID: "1"}, "": nil} {
		t.Run(fmt.Sprintf("%q", want), func(t *testing.T) {
			if got, err := h(t.Context(), event); got != want || err != nil {
				t.Errorf("the key's event is %q, %v; want %q", got, err, want)
			}
		})
	}
}

// TestErrorAndPanicPassThrough shows that an error, a panic and runtime.Goexit
// reach the caller unchanged, and release the lock.
func TestErrorAndPanicPassThrough(t *testing.T) { // P7, F18
	t.Parallel()
	type custom struct{ error }
	f := newFixture()
	mine := &custom{errors.New("mine")}
	h := middleware.WithLock(byOrder, func(_ context.Context, o order) error {
		switch o.ID {
		case "panic":
			panic(mine)
		case "goexit":
			runtime.Goexit()
		}
		return mine
	}, f.options()...)
	if err := h(t.Context(), order{ID: "error"}); err != mine {
		t.Errorf("error became %v", err)
	}
	for _, id := range []string{"panic", "goexit"} {
		got := make(chan any)
		go func() {
			defer func() { got <- recover() }()
			_ = h(context.Background(), order{ID: id})
		}()
		if v := <-got; id == "panic" && v != mine {
			t.Errorf("panic became %v", v)
		}
	}
	f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeAcquired, lock.OutcomeReleased)
}

func panicsHere(context.Context, order) error { panic("boom") }

// rows is a result that can be encoded once.
type rows struct{ from io.Reader }

func (r rows) MarshalJSON() ([]byte, error) { return io.ReadAll(r.from) }

// TestResultIsNotRead shows that the wrapper does not encode a result of any
// type if it makes no difference whether its event is completed.
func TestResultIsNotRead(t *testing.T) { // P7
	t.Parallel()
	for name, keys := range map[string][]lock.Key{"one": {{Name: "n"}}, "two": {{Name: "a"}, {Name: "b"}}} {
		f := newFixture()
		h := middleware.WithLocks(func(context.Context, any) ([]lock.Key, error) { return keys, nil }, func(context.Context) (any, error) {
			return rows{strings.NewReader("[1,2]")}, nil
		}, f.options()...)
		if got, err := json.Marshal(expect.Value(h(t.Context()))(t)); string(got) != "[1,2]" || err != nil {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// TestCompleteFailureKeepsTheResult shows that the handler's result is returned
// if the event cannot be completed, and that the lock stays held then.
func TestCompleteFailureKeepsTheResult(t *testing.T) { // F7
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.faulty.Always(fault.Release, fault.DropBefore)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		h := middleware.WithLock(byOrder, func(context.Context, order) (string, error) { return "done", nil }, f.options()...)
		if out, err := h(ctx, order{ID: "1"}); out != "done" || err != nil {
			t.Errorf("%q, %v: want the handler's result", out, err)
		}
		f.want(t, lock.OutcomeAcquired, lock.OutcomeCompleteFailed)
		again, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := h(again, order{ID: "1"}); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("a duplicate got %v, want held until the lease ends", err)
		}
	})
}

// TestNoKeyNoHandler shows that the handler does not run without a key.
func TestNoKeyNoHandler(t *testing.T) { // F26
	t.Parallel()
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		key     lock.Key
		err     error
		want    func(error) bool
		outcome lock.Outcome
	}{
		"error":      {lock.Key{Name: "n"}, boom, func(err error) bool { _, ok := err.(*lock.NoKeyError); return ok && errors.Is(err, boom) }, lock.OutcomeRefused},
		"key error":  {lock.Key{}, &lock.NoKeyError{Field: "f"}, func(err error) bool { e, ok := err.(*lock.NoKeyError); return ok && e.Field == "f" }, lock.OutcomeRefused},
		"empty name": {lock.Key{}, nil, func(err error) bool { _, ok := err.(*lock.NoKeyError); return ok }, lock.OutcomeRefused},
		"ignore":     {lock.Key{}, fmt.Errorf("no records: %w", keyfuncs.ErrIgnore), func(err error) bool { return err == nil }, middleware.OutcomeIgnored},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			key := func(context.Context, order) (lock.Key, error) { return c.key, c.err }
			h := middleware.WithLock(key, func(context.Context, order) error { t.Error("ran"); return nil }, f.options()...)
			if err := h(t.Context(), order{}); !c.want(err) {
				t.Error(err)
			}
			f.want(t, c.outcome)
		})
	}
}

// TestStoreFailure shows that the handler does not run if the store does not
// answer, and that FailOpen runs it without a lease.
func TestStoreFailure(t *testing.T) { // F13
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.faulty.Always(fault.Acquire, fault.DropBefore)
		ran := 0
		handler := func(ctx context.Context, _ order) error {
			ran++
			if _, ok := lock.FromContext(ctx); ok {
				t.Error("a lease without a lock")
			}
			return nil
		}
		err := middleware.WithLock(byOrder, handler, f.options()...)(t.Context(), order{ID: "1"})
		if _, ok := err.(*lock.StoreError); !ok || ran != 0 {
			t.Errorf("closed: %v after %d runs", err, ran)
		}
		f.want(t, lock.OutcomeStoreFailed)
		err = middleware.WithLock(byOrder, handler, f.options(middleware.FailOpen())...)(t.Context(), order{ID: "1"})
		if err != nil || ran != 1 {
			t.Errorf("open: %v after %d runs", err, ran)
		}
		f.want(t, lock.OutcomeStoreFailed, middleware.OutcomeUnlocked)
	})
}

// TestHandlerWithoutErrorFailsByPanic shows that an event is not acknowledged
// if its handler cannot return the error.
func TestHandlerWithoutErrorFailsByPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.faulty.Always(fault.Acquire, fault.Deny)
		h := middleware.WithLock(byOrder, func(order) { t.Error("ran") }, f.options(middleware.OnHeld(middleware.Skip))...)
		defer func() {
			if _, ok := recover().(*lock.StoreError); !ok {
				t.Error("want a panic with the StoreError: the event must not be acknowledged")
			}
		}()
		h(order{ID: "1"})
	})
}

// TestNested shows that wrappers can be nested if their names differ.
func TestNested(t *testing.T) { // F33
	t.Parallel()
	f := newFixture()
	inner := middleware.WithLock(keyfuncs.Prefix(keyfuncs.Func[order](func(context.Context, order) (lock.Key, error) { return lock.Key{Name: "r"}, nil }), "resource"),
		func(context.Context, order) error { return nil }, f.options()...)
	expect.OK(t, middleware.WithLock(byOrder, inner, f.options()...)(t.Context(), order{ID: "1"}))
	f.want(t, lock.OutcomeAcquired, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeReleased)
	same := middleware.WithLock(byOrder, inner, f.options()...)
	err := middleware.WithLock(byOrder, same, f.options()...)(t.Context(), order{ID: "2"})
	if _, ok := err.(*lock.ConfigError); !ok {
		t.Errorf("the same name twice: %v, want a ConfigError", err)
	}
}
