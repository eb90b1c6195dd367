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

// Contention lets 32 callers acquire one name at the same time, some without an
// event and the others with one of a few. Requests take up to 20 ms, so that
// the server sees them in different orders, and none fails. So each event must
// run once, every caller must get the name or learn that the event is
// completed, and none may lose a lock. Of c, only Histories and Share count.
func Contention(t *testing.T, open Opener, c Config) {
	t.Helper()
	Play(t, c, func(t *testing.T, seed uint64, _ func(string)) {
		contend(t, open, seed, func(what string) { t.Errorf("seed %d: %s", seed, what) })
	})
}

const (
	callers = 32
	events  = 6
)

func contend(t *testing.T, open Opener, seed uint64, violation func(string)) {
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
					violation("two own the name")
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
				violation(err.Error())
			}
		})
	}
	all.Wait()
	late.Wait()
	for event, n := range want {
		if runs[event] != n {
			violation(fmt.Sprintf("%q ran %d times, want %d", event, runs[event], n))
		}
	}
}
