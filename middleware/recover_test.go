package middleware_test

import (
	"context"
	"errors"
	"testing"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestWhereToRecover shows that a function outside the lock may recover a panic
// and return what it likes: the lock was released, and the next delivery runs.
// Inside it must return an error: WithLock sees a nil error only, and completes
// the event.
func TestWhereToRecover(t *testing.T) { // F50
	t.Parallel()
	sorry := errors.New("sorry")
	recovering := func(next func(context.Context, order) error, instead error) func(context.Context, order) error {
		return func(ctx context.Context, o order) (err error) {
			defer func() {
				if recover() != nil {
					err = instead
				}
			}()
			return next(ctx, o)
		}
	}
	for name, c := range map[string]struct {
		inside bool
		err    error
		runs   int // of two deliveries
	}{
		"outside, nil":   {false, nil, 2},
		"outside, error": {false, sorry, 2},
		"inside, error":  {true, sorry, 2},
		"inside, nil":    {true, nil, 1}, // as docs/GUIDE.md warns
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, runs := newFixture(), 0
			h := func(context.Context, order) error { runs++; panic("the work failed") }
			if c.inside {
				h = recovering(h, c.err)
			}
			h = middleware.WithLock(byOrder, h, f.options()...)
			if !c.inside {
				h = recovering(h, c.err)
			}
			first, second := h(t.Context(), order{ID: "1"}), h(t.Context(), order{ID: "1"})
			if runs != c.runs || first != c.err || second != c.err { //nolint:errorlint // the same error
				t.Errorf("ran %d times, want %d; returned %v and %v", runs, c.runs, first, second)
			}
			if n := f.count(lock.OutcomeReleased); n != c.runs {
				t.Errorf("released %d times, want %d", n, c.runs)
			}
		})
	}
}
