package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// amnesiac is a store that loses writes before the second completion arrives.
type amnesiac struct {
	*serverClock
	completions int
	lose        func()
}

func (s *amnesiac) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	if s.completions++; s.completions == 2 {
		s.lose()
	}
	return s.serverClock.Settle(ctx, t)
}

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
					s := &amnesiac{serverClock: newServerClock(time.Now)}
					f := newFixture(t)
					f.faulty.Store = s
					l := f.locker(lock.Options{})
					saved := map[string]func(){"stays": func() {}, "no row": s.Save("/resource")}
					if err := l.Do(t.Context(), lock.Key{Name: "resource", Event: "e0", Order: "4"}, nothing); err != nil {
						t.Fatal(err)
					}
					saved["before"] = s.Save("/resource")
					lk := f.mustAcquire(l, key)
					saved["own"] = s.Save("/resource")
					s.completions, s.lose = 0, saved[to]
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
