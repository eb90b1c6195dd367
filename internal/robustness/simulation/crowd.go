package simulation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/schedule"
	"github.com/lambdalock/lambdalock/internal/robustness/simclock"
	"github.com/lambdalock/lambdalock/lock"
)

// Crowd lets 32 callers acquire one name at once, some without an event and
// the others with one of a few. Requests take up to 20 ms, so that the server
// sees them in different orders, and none fails. So each event must run once,
// everybody must get the name or learn that the event is completed, and nobody
// may lose a lock. Of c, only the seeds count.
func Crowd(t *testing.T, open Opener, c Config) {
	t.Helper()
	Play(t, c, func(t *testing.T, seed uint64, _ func(string)) {
		crowd(t, open, seed, func(what string) { t.Errorf("seed %d: %s", seed, what) })
	})
}

const (
	callers = 32
	events  = 6
)

func crowd(t *testing.T, open Opener, seed uint64, broken func(string)) {
	turns := schedule.Start(seed)
	defer turns.Stop()
	late := fault.Copies{Turns: turns}
	slow := fault.Mix{Seed: seed, PerMille: map[fault.Fault]int{fault.DelayBefore: 500, fault.DelayAfter: 500}, Delay: 20 * time.Millisecond}
	server := open(t, &History{Seed: seed, Late: &late, turns: turns, mix: slow, streams: map[uint64]*fault.Stream{}})
	var mu sync.Mutex
	inside := 0
	runs := map[string]int{}
	want := map[string]int{}
	var all sync.WaitGroup
	for i := range callers {
		key := lock.Key{Name: "n"}
		if i%4 > 0 {
			key.Event = fmt.Sprint("event ", i%events)
		}
		if want[key.Event]++; key.Event != "" {
			want[key.Event] = 1
		}
		locker, err := lock.New(server(uint64(i)+1), &lock.Options{MaxWait: time.Minute, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		at := simclock.New(0, 0)
		at.Schedule(turns, uint64(i)+1, seed+uint64(i)<<32)
		all.Go(func() {
			at.Turn("begins")
			err := locker.Do(clock.With(context.Background(), at), key, func(context.Context) error {
				mu.Lock()
				if inside++; inside > 1 {
					broken("two own the name")
				}
				runs[key.Event]++
				mu.Unlock()
				time.Sleep(time.Duration(i) * time.Millisecond)
				at.Turn("ends")
				mu.Lock()
				inside--
				mu.Unlock()
				return nil
			})
			if err != nil && !errors.Is(err, lock.ErrCompleted) {
				broken(err.Error())
			}
		})
	}
	all.Wait()
	late.Wait()
	for event, n := range want {
		if runs[event] != n {
			broken(fmt.Sprintf("%q ran %d times, want %d", event, runs[event], n))
		}
	}
}
