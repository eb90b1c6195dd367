package lock_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/lock"
)

// TestOppositeOrders shows that callers who wait for each other's names never
// wait in a circle: every one of them gets all its names, whatever order it
// gives them in.
func TestOppositeOrders(t *testing.T) { // F34
	synctest.Test(t, oppositeOrders)
}

func oppositeOrders(t *testing.T) {
	f := newFixture(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	holders, most := map[string]int{}, 0
	count := func(keys []lock.Key, by int) {
		mu.Lock()
		defer mu.Unlock()
		for _, k := range keys {
			holders[k.Name] += by
			most = max(most, holders[k.Name])
		}
	}
	for i := range 100 {
		o := lock.Options{Lease: lock.Heartbeat(10 * time.Second), MaxWait: time.Hour}
		l := skewed(f.locker(o), time.Duration(i%7)*100*time.Millisecond)
		random := rand.New(rand.NewPCG(1, uint64(i)))
		all.Go(func() {
			for range 3 {
				keys := someKeys(random, "")
				set, err := l.AcquireAll(t.Context(), keys...)
				if err != nil {
					t.Errorf("client %d: %v", i, err)
					return
				}
				count(keys, 1)
				time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
				count(keys, -1)
				if err := set.Complete(); err != nil {
					t.Errorf("client %d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
	if most != 1 {
		t.Errorf("%d held a name at the same time", most)
	}
}

const severalNames = 10

// someKeys returns two to five keys with an event, in any order. All but the
// first may be without it.
func someKeys(random *rand.Rand, event string) []lock.Key {
	var some []lock.Key
	for _, n := range random.Perm(severalNames)[:2+random.IntN(4)] {
		k := lock.Key{Name: fmt.Sprintf("n%d", n), Event: event}
		if len(some) > 0 && random.IntN(4) == 0 {
			k.Event = ""
		}
		some = append(some, k)
	}
	return some
}
