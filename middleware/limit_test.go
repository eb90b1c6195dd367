package middleware_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

func toPartner[E any](E) string { return "partner" }

// gauge counts how many handlers run at the same time.
type gauge struct {
	mu         sync.Mutex
	now, most  int
	runs       int
	handleTime time.Duration
}

func (g *gauge) handle() {
	g.add(1)
	time.Sleep(g.handleTime)
	g.add(-1)
}

func (g *gauge) add(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now += n
	g.most = max(g.most, g.now)
	if n > 0 {
		g.runs++
	}
}

// TestLimit shows that as many invocations run at the same time as the limit
// allows, and what happens to the others.
func TestLimit(t *testing.T) {
	for name, c := range map[string]struct {
		limit  int
		policy middleware.HeldPolicy
		runs   int
		held   int // fail with a HeldError
	}{
		"one, Fail":   {1, middleware.Fail, 1, 6},
		"three, Fail": {3, middleware.Fail, 3, 4},
		"three, Skip": {3, middleware.Skip, 3, 0},
		"three, Wait": {3, middleware.Wait(time.Minute), 7, 0},
		"seven, Fail": {7, middleware.Fail, 7, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, g := newFixture(), &gauge{handleTime: 5 * time.Second}
				h := middleware.WithLimit(toPartner[any], c.limit, func(context.Context) error { g.handle(); return nil },
					f.options(middleware.OnHeld(c.policy))...)
				got := make(chan error)
				for range 7 {
					go func() { got <- h(t.Context()) }()
				}
				held := 0
				for range 7 {
					switch err := <-got; {
					case errors.Is(err, lock.ErrHeld):
						held++
					case err != nil:
						t.Error(err)
					}
				}
				if g.runs != c.runs || g.most != c.limit || held != c.held {
					t.Errorf("%d runs, %d at the same time, %d held; want %d, %d, %d", g.runs, g.most, held, c.runs, c.limit, c.held)
				}
			})
		})
	}
}

// TestLimitInsideDuplicates shows that an outer wrapper refuses the duplicates
// that a limited name cannot tell apart.
func TestLimitInsideDuplicates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, g := newFixture(), &gauge{handleTime: time.Second}
		limited := middleware.WithLimit(toPartner[order], 2, func(context.Context, order) error { g.handle(); return nil },
			f.options(middleware.OnHeld(middleware.Wait(time.Minute)))...)
		h := middleware.WithLock(lockPerOrder, limited, f.options(middleware.OnHeld(middleware.Wait(time.Minute)))...)
		var wg sync.WaitGroup
		for _, id := range []string{"1", "2", "3", "1", "2", "3"} {
			wg.Go(func() {
				expect.OK(t, h(t.Context(), order{ID: id}))
			})
		}
		wg.Wait()
		if g.runs != 3 || g.most != 2 {
			t.Errorf("%d runs, %d at the same time; want 3, 2", g.runs, g.most)
		}
	})
}

// TestLimitWithoutAName shows that an event without a name does not run.
func TestLimitWithoutAName(t *testing.T) {
	t.Parallel()
	f := newFixture()
	h := middleware.WithLimit(func(o order) string { return o.ID }, 2, func(context.Context, order) error {
		t.Error("the handler ran")
		return nil
	}, f.options()...)
	if err := h(t.Context(), order{}); !errors.As(err, new(*lock.NoKeyError)) {
		t.Errorf("got %v, want a NoKeyError", err)
	}
	f.want(t, lock.OutcomeRefused)
}

// TestLimitInBatches shows that each record of a batch counts.
func TestLimitInBatches(t *testing.T) { // F32
	synctest.Test(t, func(t *testing.T) {
		f, g := newFixture(), &gauge{handleTime: time.Second}
		limited := middleware.WithLimit(toPartner[events.SQSMessage], 2, func(context.Context, events.SQSMessage) error { g.handle(); return nil },
			f.options(middleware.OnHeld(middleware.Wait(time.Minute)))...)
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, limited, f.options()...)
		got, err := h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m1"}, {MessageId: "m2"}, {MessageId: "m3"}}})
		if err != nil || len(got.BatchItemFailures) > 0 || g.most != 2 || g.runs != 3 {
			t.Errorf("got %v, %v; %d runs, %d at the same time", got, err, g.runs, g.most)
		}
	})
}
