package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// TestCompletionWhoseRowGoesBack shows that a completion without an answer is
// not believed if the row that is there at the next attempt does not know the
// event, or if there is none. If the row is the lock's own again, the next
// attempt completes the event.
func TestCompletionWhoseRowGoesBack(t *testing.T) { // F5, F23, F56
	keys := map[string]lock.Key{
		"event": {Name: "resource", Event: "e1"}, "order": {Name: "resource", Order: "5"}, "both": {Name: "resource", Event: "e1", Order: "5"},
	}
	for name, key := range keys {
		for to, believed := range map[string]bool{"no row": false, "before": false, "own": true, "stays": true} {
			t.Run(name+", "+to, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s, f := newServerClock(time.Now), newFixture(t)
					f.faulty.Store = s
					l := f.locker(lock.Options{})
					saved := map[string]func(){"stays": func() {}, "no row": s.Save("/resource")}
					expect.Must(t, l.Do(t.Context(), lock.Key{Name: "resource", Event: "e0", Order: "4"}, nothing))
					saved["before"] = s.Save("/resource")
					lk := f.mustAcquire(l, key)
					saved["own"] = s.Save("/resource")
					completions := 0
					f.faulty.Store = fault.Hooks{Store: s, OnSettle: func(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
						if completions++; completions == 2 {
							saved[to]() // the store loses what it wrote since
						}
						return s.Settle(ctx, t)
					}}
					f.faulty.Plan(fault.Release, fault.ApplyThenDrop)
					if err := lk.Complete(); errors.Is(err, lock.ErrLost) == believed || (err == nil) != believed {
						t.Errorf("completion: %v, want that it is believed: %v", err, believed)
					}
					if err := l.Do(t.Context(), key, nothing); errors.Is(err, lock.ErrCompleted) != believed {
						t.Errorf("the next delivery: %v", err)
					}
				})
			})
		}
	}
}
