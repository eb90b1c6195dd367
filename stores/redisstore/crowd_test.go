package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/internal/sim/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore"
)

// TestQuorumCrowd lets 32 callers acquire one name at once: some without an
// event, the others with one of a few. Nothing fails, so each event runs once,
// everybody gets the name or learns that the event is completed, and nobody
// loses a lock. Requests travel for up to 5 ms, so the nodes see them in
// different orders.
func TestQuorumCrowd(t *testing.T) {
	for _, nodes := range []int{3, 5} {
		t.Run(fmt.Sprint(nodes, " nodes"), func(t *testing.T) {
			t.Parallel()
			for seed := range seeds(t, 5, 10) {
				synctest.Test(t, func(t *testing.T) { crowd(t, nodes, seed) })
			}
		})
	}
}

func crowd(t *testing.T, nodes int, seed uint64) {
	machines := make([]*machine, nodes)
	for i := range machines {
		machines[i] = newMachine(t)
	}
	var late fault.Copies
	open := func(client uint64) driver.Store {
		links := make([]redis.Scripter, nodes)
		for i, m := range machines {
			plan := fault.Usual(seed, 0).Client(client)
			links[i] = newLink(m, fmt.Sprint("node:", i), plan, &late, seed, client*uint64(nodes)+uint64(i))
		}
		return redisstore.NewQuorum(links...)
	}
	var mu sync.Mutex
	inside := false
	runs := map[string]int{}
	var all sync.WaitGroup
	for i := range uint64(32) {
		locker, err := lock.New(open(i), &lock.Options{MaxWait: time.Minute, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		key := lock.Key{Name: "n"}
		if i%4 > 0 {
			key.Event = fmt.Sprint("event ", i%6)
		}
		all.Go(func() {
			err := locker.Do(context.Background(), key, func(context.Context) error {
				mu.Lock()
				if inside {
					t.Errorf("seed %d: two own the name", seed)
				}
				inside = true
				runs[key.Event]++
				mu.Unlock()
				time.Sleep(time.Duration(i) * time.Millisecond)
				mu.Lock()
				inside = false
				mu.Unlock()
				return nil
			})
			if err != nil && !errors.Is(err, lock.ErrCompleted) {
				t.Errorf("seed %d: %v", seed, err)
			}
		})
	}
	all.Wait()
	late.Wait()
	for event, n := range runs {
		if want := map[bool]int{true: 8, false: 1}[event == ""]; n != want {
			t.Errorf("seed %d: %q ran %d times, want %d", seed, event, n, want)
		}
	}
}
